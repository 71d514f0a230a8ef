// Exact distributions on states of a few bits, as in steppe.diagnostics.exact. State i has its first bit highest.

const numBits = (table) => Math.log2(table.length);
const flipped = (state, site, bits) => state ^ (1 << (bits - 1 - site));
const sites = (bits) => Array.from({ length: bits }, (_, site) => site);

function normalised(weights) {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

// One row per state: log-odds of flipping each site, ½(ΔU − 1/α). The multilinear gradient is exact per flip.
function flipLogits(logTable, stiffness) {
  const bits = numBits(logTable);
  return logTable.map((value, state) =>
    sites(bits).map((site) => 0.5 * (logTable[flipped(state, site, bits)] - value - stiffness)),
  );
}

// Probability of every move of the discrete Langevin proposal at step size 1 / stiffness.
function langevinMatrix(logTable, stiffness) {
  const bits = numBits(logTable);
  const sigmoid = (logit) => 1 / (1 + Math.exp(-logit));
  return flipLogits(logTable, stiffness).map((logits, from) =>
    logTable.map((_, to) =>
      sites(bits).reduce((product, site) => {
        const flips = ((from ^ to) >> (bits - 1 - site)) & 1;
        return product * sigmoid(flips ? logits[site] : -logits[site]);
      }, 1),
    ),
  );
}

// The distribution a matrix leaves invariant, by elimination without subtraction (Grassmann, Taksar, Heyman).
function stationaryDistribution(matrix) {
  const reduced = matrix.map((row) => [...row]);
  for (let last = reduced.length - 1; last > 0; last--) {
    const scale = reduced[last].slice(0, last).reduce((sum, value) => sum + value, 0);
    for (let i = 0; i < last; i++) {
      reduced[i][last] /= scale;
      for (let j = 0; j < last; j++) reduced[i][j] += reduced[i][last] * reduced[last][j];
    }
  }
  const distribution = [1];
  for (let state = 1; state < reduced.length; state++) {
    distribution.push(distribution.reduce((sum, mass, before) => sum + mass * reduced[before][state], 0));
  }
  return normalised(distribution);
}

const dulaDistribution = (logTable, stiffness) => stationaryDistribution(langevinMatrix(logTable, stiffness));

// exp(U − λR) with R the mean of |ΔU| over single flips.
function tiltedDistribution(logTable, strength) {
  const bits = numBits(logTable);
  const tilted = logTable.map((value, state) => {
    const changes = sites(bits).map((site) => Math.abs(logTable[flipped(state, site, bits)] - value));
    return value - (strength * changes.reduce((sum, change) => sum + change, 0)) / bits;
  });
  const highest = Math.max(...tilted);
  return normalised(tilted.map((value) => Math.exp(value - highest)));
}

const massOn = (distribution, states) => states.reduce((sum, state) => sum + distribution[state], 0);
const meanOf = (distribution, values) => distribution.reduce((sum, mass, state) => sum + mass * values[state], 0);
const totalVariation = (a, b) => 0.5 * a.reduce((sum, mass, state) => sum + Math.abs(mass - b[state]), 0);
