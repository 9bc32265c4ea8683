// Runs the case files of test/core on core.wasm. Each suite takes the parsed files of its folder and
// gives how many cases it ran, and what failed.
import { readBody } from './bodies.mjs'
import { latin1, utf8 } from './core.mjs'
import { readHead } from './heads.mjs'
import { Rates } from './rate.mjs'
import { compile, findAll, Mask, test } from './regex.mjs'
import { Routes } from './routes.mjs'
import { Vocabulary } from './tokens.mjs'

const isSame = (left, right) => JSON.stringify(left) === JSON.stringify(right)

function codeOf({ constants }, { message, refused }) {
  const code = constants[refused]
  return message === 'response' ? constants.ERROR_RESPONSE - (-code % 100) : code
}

/** What is wrong about a case; undefined when nothing is. */
function headProblem(core, example) {
  const { code, head } = readHead(core, example)
  const wanted = example.refused === undefined ? 0 : codeOf(core, example)
  if (code !== wanted) return `code ${code} instead of ${wanted}`
  for (const [key, value] of Object.entries(example.expect ?? {})) {
    const expected = key === 'flags' ? [...value].sort() : value
    if (!isSame(head[key], expected)) return `${key} is ${JSON.stringify(head[key])}`
  }
}

function regexProblem(core, example) {
  const { handle, offset } = compile(core, example.pattern)
  if (example.code !== undefined) {
    const isRefused = handle === core.constants[example.code] && offset === example.offset
    return isRefused ? undefined : `${handle} at ${offset}`
  }
  const text = bytesOf(example)
  const spans = findAll(core, handle, text)
  const isMatch = test(core, 'regex_is_match', handle, text)
  const isFull = test(core, 'regex_full_match', handle, text)
  core.call.regex_free(handle)
  if (!isSame(spans, example.spans)) return JSON.stringify(spans)
  if (isMatch !== spans.length > 0) return `is_match is ${isMatch}`
  if (example.full !== undefined && isFull !== example.full) return `full_match is ${isFull}`
}

const unhex = (hex) => latin1(hex.replace(/../g, (pair) => String.fromCharCode(`0x${pair}`)))

/**
 * The bytes of a case: `text`, `hex` (what is not UTF-8) or `units` (a string of UTF-16, whose lone
 * surrogates an encoder makes U+FFFD), `repeat` times.
 */
function bytesOf({ text, hex, units, repeat = 1 }) {
  const string = units === undefined ? text : String.fromCharCode(...units)
  const once = hex === undefined ? utf8(string) : unhex(hex)
  const bytes = new Uint8Array(once.length * repeat)
  for (let i = 0; i < repeat; i++) bytes.set(once, i * once.length)
  return bytes
}

const builtins = [
  ['DETECT_SSN', '<SSN>'],
  ['DETECT_CARD', '<CREDIT_CARD>'],
  ['DETECT_PHONE', '<PHONE_NUMBER>'],
  ['DETECT_EMAIL', '<EMAIL_ADDRESS>'],
  ['DETECT_SIN', '<CA_SIN>'],
].map(([builtin, replacement]) => ({ builtin, replacement }))

/**
 * Where a text of so many bytes is cut: nowhere, in two pieces at every byte, at every byte at once;
 * a long one into pieces of some sizes.
 */
function cutsOf(length) {
  const every = (size) =>
    Array.from({ length: Math.ceil(length / size) }, (_, index) => index * size)
  return length > 400
    ? [[], every(7), every(64), every(4096)]
    : [[], ...every(1).map((cut) => [cut]), [length], every(1)]
}

function maskProblem(core, example) {
  const mask = new Mask(core)
  for (const { builtin, pattern, words, replacement } of example.rules ?? builtins) {
    if (words !== undefined) mask.addWords(words, replacement)
    else if (pattern === undefined) mask.addBuiltin(core.constants[builtin], replacement)
    else mask.addPattern(pattern, replacement)
  }
  const bytes = bytesOf(example)
  const { masked, maskedHex, repeat } = example
  const wanted = bytesOf({ text: masked, hex: maskedHex, repeat })
  const isWanted = (out) =>
    out.length === wanted.length && out.every((byte, i) => byte === wanted[i])
  const wrong = cutsOf(bytes.length).find((cuts) => !isWanted(mask.apply(bytes, cuts)))
  const hold = core.call.mask_hold(mask.set)
  core.call.mask_free(mask.set)
  if (example.hold !== undefined && hold !== example.hold) return `may hold back ${hold} bytes`
  if (wrong !== undefined) return `differs when cut at ${wrong.slice(0, 3)}`
}

/** Whole, cut at every byte, and everywhere at once. */
function bodyProblem(core, { bytes, refused, data, trailers = '', rest = '', open, flags }) {
  const all = Array.from({ length: Math.min(bytes.length, 200) }, (_, index) => index)
  const { CHUNKS_END, CHUNKS_MORE } = core.constants
  const code = open ? CHUNKS_MORE : CHUNKS_END
  for (const cuts of [[], ...all.map((cut) => [cut]), all]) {
    const seen = readBody(core, latin1(bytes), cuts)
    const isRight =
      refused === undefined
        ? isSame(seen, { code, data, trailers, rest, flags: [...flags].sort() })
        : seen.code === core.constants[refused]
    if (!isRight) return `${JSON.stringify(seen)} when cut at ${cuts.slice(0, 3)}`
  }
}

const vocabularies = new Map()

/** `loadVocabulary` is asked for each file once, and only when a text needs it. */
function tokensProblem(core, example, loadVocabulary) {
  const { encoding, count, ids } = example
  const known = vocabularies.get(encoding) ?? new Vocabulary(core, loadVocabulary(encoding))
  vocabularies.set(encoding, known)
  const text = bytesOf(example)
  const counted = known.count(text)
  if (counted !== count) return `${counted} tokens instead of ${count}`
  if (ids !== undefined && !isSame(known.encode(text, ids.length), ids)) return 'other ids'
}

function routeProblem(core, { listeners = [['', 0]], routes, requests }) {
  const table = new Routes(core)
  for (const [hostname, scope] of listeners) table.addListener(hostname, scope)
  for (const route of routes) table.addRoute(route)
  const wrong = requests.find(({ expect, ...request }) => {
    const id = table.match(request)
    return id !== (typeof expect === 'number' ? expect : core.constants[expect])
  })
  table.free()
  return wrong === undefined ? undefined : JSON.stringify(wrong)
}

function rateProblem(core, { rate, unit, burst, steps }) {
  const rates = new Rates(core)
  const limit = { period: unit / rate, capacity: rate + burst }
  const wrong = steps.find((step) => {
    const seen = rates.ask(step.do, 1, 'key', limit, step.amount, step.at)
    const wait = step.wait === 'never' ? Number.POSITIVE_INFINITY : step.wait
    return !(
      (step.is === undefined || step.is === seen.isAdmitted) &&
      (step.remaining === undefined || step.remaining === seen.remaining) &&
      (wait === undefined || wait === seen.wait || Math.abs(wait - seen.wait) < 1e-4) &&
      (step.reset === undefined || Math.abs(step.reset - seen.reset) < 1e-4)
    )
  })
  rates.free()
  return wrong === undefined ? undefined : JSON.stringify(wrong)
}

/** Folder of test/core, and what checks a case of its files. */
export const suites = {
  heads: headProblem,
  chunks: bodyProblem,
  'regex/cases': regexProblem,
  'regex/masks': maskProblem,
  routes: routeProblem,
  'tokens/cases': tokensProblem,
  rate: rateProblem,
}

/**
 * `files` are the parsed JSON files of each suite's folder; `loadVocabulary` gives the bytes of an
 * encoding's vocabulary, decompressed.
 */
export function runSuites(core, files, loadVocabulary) {
  const run = {}
  const failures = []
  for (const [name, problemOf] of Object.entries(suites)) {
    const cases = files[name].flatMap((file) => (Array.isArray(file) ? file : file.cases))
    run[name] = cases.length
    for (const example of cases) {
      const problem = problemOf(core, example, loadVocabulary)
      const title = example.title ?? example.name ?? example.pattern
      if (problem !== undefined) failures.push(`${name}: ${title}: ${problem}`)
    }
  }
  return { run, failures }
}
