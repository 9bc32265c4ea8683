/** Normalizes the names of models, which differ between providers. */

const geography = /^(?:us|eu|apac|global|au|jp|in|ca|us-gov|us-gov-east-1|us-gov-west-1)\./
/** Publishers in front of names at vendor F. Names of other publishers are not clear without it. */
const publisher = /^(?:anthropic|amazon|openai)\./
/** Versions, dates and sizes of releases, such as `-v1:0`, `@20251001`, `-2025-08-07`, `-20251001` and `:120b`. */
const release = /(?:-v\d+(?::\w+)+|:[^:]*|@.*|-\d{4}-\d\d-\d\d|-\d{8})$/

/** Versions and dates only: what else follows a colon may be another model, such as `:free` and `:120b`. */
const datedRelease = /(?:-v\d+(?::\d+)+|@.*|-\d{4}-\d\d-\d\d|-\d{8})$/

/** Returns the name by which families know a model, such as `claude-opus-4-7` for `us.anthropic.claude-opus-4-7-v1:0`. */
export function plainName(model: string): string {
  const lower = model.toLowerCase()
  const tuned = lower.startsWith('ft:') ? (lower.split(':')[1] ?? '') : lower
  let name = tuned.slice(tuned.lastIndexOf('/') + 1)
  name = name.replace(geography, '').replace(publisher, '')
  for (let before = ''; before !== name; ) {
    before = name
    name = name.replace(release, '')
  }
  // Some gateways write versions of Claude with dots, and vendor F ends some of them with `-v1`.
  return name.startsWith('claude-') ? name.replaceAll('.', '-').replace(/-v\d+$/, '') : name
}

/**
 * Returns the names under which lists have the prices of a model, the best first. Prices may differ between places and
 * between a model and its tuned versions, so these parts of a name stay; only publishers' paths, versions and dates go.
 */
export function priceNames(model: string): string[] {
  const lower = model.toLowerCase()
  const [tuned, base = ''] = lower.split(':')
  if (tuned === 'ft') return [lower, `ft:${base}`, `ft:${base.replace(datedRelease, '')}`]
  const last = lower.slice(lower.lastIndexOf('/') + 1)
  const names = [lower, last]
  for (let before = last; ; ) {
    const shorter = before.replace(datedRelease, '')
    if (shorter === before) return [...new Set(names)]
    names.push(shorter)
    before = shorter
  }
}

type Matches = (name: string) => boolean

/** Returns true if the whole name matches a pattern in which `*` stands for any text. Takes linear time. */
export const matchesName = (pattern: string, name: string): boolean => parsePattern(pattern)(name)

function parsePattern(pattern: string): Matches {
  const [prefix = '', ...others] = pattern.split('*')
  if (others.length === 0) return (name) => name === pattern
  const suffix = others.pop() ?? ''
  return (name) => matchesPieces(prefix, others, suffix, name)
}

/** Returns a function that tells whether a name matches any of the patterns. */
export function parsePatterns(patterns: readonly string[]): Matches {
  const parsed = patterns.map(parsePattern)
  return (name) => parsed.some((matches) => matches(name))
}

function matchesPieces(
  prefix: string,
  pieces: readonly string[],
  suffix: string,
  name: string,
): boolean {
  const end = name.length - suffix.length
  if (!name.startsWith(prefix) || !name.endsWith(suffix) || end < prefix.length) return false
  let from = prefix.length
  for (const piece of pieces) {
    const at = name.indexOf(piece, from)
    if (at < 0 || at + piece.length > end) return false
    from = at + piece.length
  }
  return true
}
