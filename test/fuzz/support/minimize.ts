/** Ways to make an input smaller, boldest first. */
function* smaller(input: Buffer): Generator<Buffer> {
  for (let size = Math.ceil(input.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < input.length; at += size) {
      yield Buffer.concat([input.subarray(0, at), input.subarray(at + size)])
    }
  }
}

/** The smallest input found within the time for which `fails` still says true. */
export async function minimize(
  input: Buffer,
  fails: (input: Buffer) => Promise<boolean>,
  milliseconds: number,
): Promise<Buffer> {
  const until = performance.now() + milliseconds
  let best = input
  for (let hasShrunk = true; hasShrunk; ) {
    hasShrunk = false
    for (const candidate of smaller(best)) {
      if (performance.now() > until) return best
      if (!(await fails(candidate))) continue
      best = candidate
      hasShrunk = true
      break
    }
  }
  return best
}
