// Runs the case files of test/core on core.wasm. Each suite takes the parsed files of its folder and
// gives how many cases it ran, and what failed.
import { latin1, utf8 } from './core.mjs'
import { readHead } from './heads.mjs'
import { Rates } from './rate.mjs'
import { compile, findAll, Mask, test } from './regex.mjs'
import { Routes } from './routes.mjs'

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
  const text = example.hex === undefined ? utf8(example.text) : latin1(unhex(example.hex))
  const spans = findAll(core, handle, text)
  const isMatch = test(core, 'regex_is_match', handle, text)
  const isFull = test(core, 'regex_full_match', handle, text)
  core.call.regex_free(handle)
  if (!isSame(spans, example.spans)) return JSON.stringify(spans)
  if (isMatch !== spans.length > 0) return `is_match is ${isMatch}`
  if (example.full !== undefined && isFull !== example.full) return `full_match is ${isFull}`
}

const unhex = (hex) => hex.replace(/../g, (pair) => String.fromCharCode(Number.parseInt(pair, 16)))

const replacements = {
  DETECT_SSN: '<SSN>',
  DETECT_CARD: '<CREDIT_CARD>',
  DETECT_PHONE: '<PHONE_NUMBER>',
  DETECT_EMAIL: '<EMAIL_ADDRESS>',
  DETECT_SIN: '<CA_SIN>',
}

function maskProblem(core, { text, masked }) {
  const mask = new Mask(core)
  for (const [name, replacement] of Object.entries(replacements)) {
    mask.addBuiltin(core.constants[name], replacement)
  }
  const bytes = utf8(text)
  const whole = mask.apply([bytes])
  const middle = bytes.length >> 1
  const halves = mask.apply([bytes.subarray(0, middle), bytes.subarray(middle)])
  core.call.mask_free(mask.set)
  if (whole !== masked) return whole
  if (halves !== masked) return `in two pieces: ${halves}`
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
  'regex/cases': regexProblem,
  'regex/masks': maskProblem,
  routes: routeProblem,
  rate: rateProblem,
}

/** `files` are the parsed JSON files of each suite's folder. */
export function runSuites(core, files) {
  const run = {}
  const failures = []
  for (const [name, problemOf] of Object.entries(suites)) {
    const cases = files[name].flatMap((file) => (Array.isArray(file) ? file : file.cases))
    run[name] = cases.length
    for (const example of cases) {
      const problem = problemOf(core, example)
      const title = example.title ?? example.name ?? example.pattern
      if (problem !== undefined) failures.push(`${name}: ${title}: ${problem}`)
    }
  }
  return { run, failures }
}
