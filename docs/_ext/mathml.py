"""Formulas as MathML, which browsers draw themselves: no script, no font and no network needed."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: nodes.Node) -> None:
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.Node) -> None:
    # A long one is scrolled sideways on a phone, by the keyboard too.
    formula = tex2mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="formula" tabindex="0">{formula}</div>\n')
    raise nodes.SkipNode
