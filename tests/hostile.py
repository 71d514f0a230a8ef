"""Texts that try to become code, and results that carry one in every field."""

from pathlib import Path

from steppe.results import Column, Estimate, Figure, Provenance, Results, Table, Verdict

CODE = "window.broken=1"
WRAPPERS = (
    "<script>{}</script>",
    "</script><script>{}</script>",
    "</style><script>{}</script>",
    "<!--</script><script>{}//",
    "]]><script>{}</script>",
    "<svg onload={}>",
    "<img src=x onerror={}>",
    '"><img src=x onerror={}>',
    "'><img src=x onerror={}>",
    '" onmouseover="{}" x="',
    "' onfocus='{}' autofocus '",
    "<iframe srcdoc='<script>parent.{}</script>'>",
    "<a href=javascript:{}>x</a>",
    "javascript:{}",
    "<body onload={}>",
    "<details open ontoggle={}>",
    "<math><mtext><script>{}</script>",
    "<object data=javascript:{}>",
    "<base href=//x.invalid/><script>{}</script>",
    "<meta http-equiv=refresh content='0;javascript:{}'>",
    "<form action=javascript:{}><button autofocus>x",
    "<style>@import 'x';</style><script>{}</script>",
    "{{{{ {} }}}}",
    "{{% set x = '{}' %}}",
    "${{{}}}",
    "`${{{}}}`",
    "\\u003cscript\\u003e{}\\u003c/script\\u003e",
    "&lt;script&gt;{}&lt;/script&gt;",
    "&#60;script&#62;{}&#60;/script&#62;",
    "<scr<script>ipt>{}</scr</script>ipt>",
    "<SCRIPT>{}</SCRIPT>",
    "<script\n>{}</script\n>",
    '=HYPERLINK("javascript:{}")',
    "\u202e<script>{}</script>",
    "\u2028<script>{}</script>\u2029",
    "\x00<script>{}</script>",
    "\x1b]0;x\x07<script>{}</script>",
    "＜script＞{}＜/script＞",
    "<template><script>{}</script></template>",
    "<noscript><p title='</noscript><script>{}</script>'>",
)
ENDINGS = ("", "'", '"', "-->", "\\")
HOSTILE = [wrapper.format(CODE) + ending for wrapper in WRAPPERS for ending in ENDINGS]
HOSTILE[-1] += "W" * 2000  # no text is too long either
SVG = (
    f'<svg xmlns="http://www.w3.org/2000/svg" onload="{CODE}"><script>top.{CODE}</script><text>x</text></svg>'
)


def filled(text: str) -> Results:
    """Results with the text wherever text may stand."""
    estimate = Estimate(value=1.0, low=0.0, high=2.0)
    columns = [Column(key="a", label=text, unit=text, better="higher"), Column(key="b", label=text)]
    return Results(
        name="bernoulli",
        title=text,
        question=text,
        protocol="sound",
        scale="quick",
        facts={text: text},
        verdicts=[Verdict(claim=text, outcome="holds", sentence=text, estimate=estimate)],
        tables=[
            Table(
                key="t",
                title=text,
                columns=columns,
                rows=[{"a": text, "b": estimate}, {"a": text + "2", "b": None}],
                reference_rows=[0],
                notes=[text],
            )
        ],
        figures=[
            Figure(key="drawn", title=text, caption=text, alternative=text),
            Figure(key="lost", title=text, caption=text, alternative=text),
        ],
        settings={text: text},
        notes=[text],
        provenance=Provenance(
            command=text,
            versions={text: text},
            device=text,
            seeds=[0],
            data={text: text},
            started=text,
            seconds=1.0,
        ),
    )


def write_filled(directory: Path, texts: list[str]) -> Path:
    """One subdirectory per text, each with a drawing that holds a script."""
    for number, text in enumerate(texts):
        folder = directory / f"{number:04d}"
        filled(text).save(folder)
        (folder / "figures").mkdir()
        (folder / "figures" / "drawn.svg").write_text(SVG, encoding="utf-8")
    return directory


def write_hostile(directory: Path) -> Path:
    """All texts, and a damaged file whose folder and content are hostile too."""
    write_filled(directory, HOSTILE)
    folder = directory / f"<img src=x onerror={CODE}>"
    folder.mkdir()
    damaged = folder / "results.json"
    damaged.write_text(f'{{"<script>{CODE}</script>": 1}}', encoding="utf-8")
    return directory
