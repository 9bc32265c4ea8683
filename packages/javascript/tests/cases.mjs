// Runs the case files that all hosts share with the package. Each suite has what is wrong about a case.
import {
  Guards,
  GuardsError,
  Mask,
  MaskStream,
  Pattern,
  RateLimiter,
  Router,
  TokenCounter,
} from '@sluice/core'

const encoder = new TextEncoder()
const isSame = (left, right) => JSON.stringify(left) === JSON.stringify(right)

/** Whether the parts, one after the other, are the wanted bytes. */
function hasBytes(wanted, ...parts) {
  let at = 0
  for (const part of parts) {
    for (const byte of part) if (byte !== wanted[at++]) return false
  }
  return at === wanted.length
}

/** `text`, `hex` (bytes that are not UTF-8), or `units` of UTF-16, `repeat` times. */
function bytesOf({ text, hex, units, repeat = 1 }) {
  const string = units === undefined ? (text ?? '') : String.fromCharCode(...units)
  const pairs = hex?.match(/../g) ?? []
  const once =
    hex === undefined ? encoder.encode(string) : Uint8Array.from(pairs, (pair) => `0x${pair}`)
  const bytes = new Uint8Array(once.length * repeat)
  for (let at = 0; at < bytes.length; at += once.length) bytes.set(once, at)
  return bytes
}

function patternProblem({ pattern: source, code, offset, message, ...example }) {
  let pattern
  try {
    pattern = new Pattern(source)
  } catch (error) {
    // The files have offsets of bytes.
    const seen = [error.code, encoder.encode(source.slice(0, error.offset)).length]
    const isRight = isSame(seen, [code, offset]) && error.message.endsWith(message)
    return isRight ? undefined : `${seen}: ${error}`
  }
  if (code !== undefined) return 'it is accepted'
  const text = bytesOf(example)
  const spans = pattern.findAll(text).map(({ start, end }) => [start, end])
  if (!isSame(spans, example.spans)) return JSON.stringify(spans)
  if (pattern.isMatch(text) !== spans.length > 0) return 'isMatch'
  if (example.full !== undefined && pattern.fullMatch(text) !== example.full) return 'fullMatch'
}

const builtins = {
  DETECT_SSN: 'Ssn',
  DETECT_CARD: 'CreditCard',
  DETECT_PHONE: 'PhoneNumber',
  DETECT_EMAIL: 'Email',
  DETECT_SIN: 'CaSin',
}
const allBuiltins = Object.values(builtins).map((builtin) => ({ builtin }))
const otherBuiltins = {
  DETECT_IBAN: 'Iban',
  DETECT_IP: 'IpAddress',
  DETECT_VAT: 'VatNumber',
  DETECT_TAX_ID: 'DeTaxId',
  DETECT_NIR: 'FrNir',
  DETECT_NIF: 'EsNif',
  DETECT_FISCAL_CODE: 'ItFiscalCode',
  DETECT_BSN: 'NlBsn',
  DETECT_PESEL: 'PlPesel',
  DETECT_PERSONNUMMER: 'SePersonnummer',
  DETECT_NINO: 'UkNino',
  DETECT_NHS: 'UkNhs',
  DETECT_AADHAAR: 'InAadhaar',
  DETECT_CPF: 'BrCpf',
  DETECT_CNPJ: 'BrCnpj',
  DETECT_SECRET: 'Secret',
}

const ruleOf = ({ pattern, builtin, words, replacement }) =>
  words !== undefined
    ? { words, replacement }
    : pattern === undefined
      ? { builtin: builtins[builtin] ?? otherBuiltins[builtin], replacement }
      : { pattern, replacement }

function maskProblem({ rules, masked, maskedHex, repeat, hold, ...example }) {
  const mask = new Mask(rules?.map(ruleOf) ?? allBuiltins)
  const text = bytesOf({ ...example, repeat })
  const wanted = bytesOf({ text: masked, hex: maskedHex, repeat })
  if (!hasBytes(wanted, mask.applyBytes(text))) return 'applyBytes'
  for (let cut = 1; cut < text.length; cut += Math.max(1, Math.floor(text.length / 200))) {
    const stream = new MaskStream(mask)
    const out = stream.pushBytes(text.subarray(0, cut))
    const rest = stream.endBytes(text.subarray(cut))
    if (!hasBytes(wanted, out, rest)) return `cut at ${cut}`
  }
  if (hold !== undefined && (mask.holdBytes ?? -1) !== hold) return `holdBytes ${mask.holdBytes}`
}

function routeProblem({ listeners = [['', 0]], routes, requests }) {
  const specifications = routes.map(({ path, createdAt, ...route }) => ({
    ...route,
    path: path?.value,
    pathType: path?.type,
    created: createdAt,
    name: route.name ?? `n/${route.id}`,
  }))
  const router = new Router(specifications, { listeners })
  const wrong = requests.find(({ path = '/', query, authority = 'a', expect, ...request }) => {
    const target = query === undefined ? path : `${path}?${query}`
    const found = router.match(target, { ...request, host: authority })
    return found !== (typeof expect === 'number' ? expect : undefined)
  })
  return wrong === undefined ? undefined : JSON.stringify(wrong)
}

const models = { o200k_base: 'gpt-4o', cl100k_base: 'gpt-4' }

async function tokensProblem({ encoding, count, ids, ...example }) {
  const counter = await TokenCounter.load(models[encoding])
  const text = bytesOf(example)
  if (counter.count(text) !== count) return `${counter.count(text)} tokens`
  if (ids !== undefined && !isSame([...counter.encode(text)], ids)) return 'other ids'
}

const isNear = (left, right) => left === right || Math.abs(left - right) < 1e-4

function rateProblem({ rate, unit, burst, error: expected, steps }) {
  let now = 0
  let limiter
  try {
    limiter = new RateLimiter({ rate, per: unit, burst, clock: () => now })
  } catch (error) {
    return error instanceof RangeError && error.message.includes(expected) ? undefined : `${error}`
  }
  if (expected !== undefined) return 'it is accepted'
  const wrong = steps.find((step) => {
    now = step.at
    const { text, repeat = 1 } = step.key ?? { text: 'key' }
    const key = text.repeat(repeat)
    const limit =
      step.do === 'charge' ? limiter.charge(step.amount, key) : limiter[step.do](key, step.amount)
    const wait = step.wait === 'never' ? Number.POSITIVE_INFINITY : step.wait
    return !(
      (step.is ?? limit.allowed) === limit.allowed &&
      (step.remaining ?? limit.remaining) === limit.remaining &&
      isNear(wait ?? limit.wait, limit.wait) &&
      isNear(step.reset ?? limit.reset, limit.reset)
    )
  })
  return wrong === undefined ? undefined : JSON.stringify(wrong)
}

/** What passes, or why nothing does. */
function rewrite(guards, { format, message }, pieces) {
  const rewriter = guards.rewriter(format, message)
  try {
    const out = pieces.map((piece, at) =>
      at + 1 < pieces.length ? rewriter.push(piece) : rewriter.end(piece),
    )
    const { rejectedBy } = rewriter.details
    return rejectedBy === undefined ? out : rejectedBy
  } catch (error) {
    return error instanceof GuardsError ? error.message.split(' ').at(-1) : String(error)
  }
}

function textsProblem({ input, output, code, rejectedBy, ...example }) {
  const guards = new Guards(
    example.guards.map((guard) => ({ ...guard, rules: guard.rules.map(ruleOf) })),
  )
  const bytes = encoder.encode(input)
  const wanted = output === undefined ? (code ?? rejectedBy) : encoder.encode(output)
  const isWanted = (seen) =>
    output === undefined ? seen === wanted : Array.isArray(seen) && hasBytes(wanted, ...seen)
  const step = Math.max(1, Math.floor(bytes.length / 50))
  for (let cut = 0; cut <= bytes.length; cut += step) {
    const seen = rewrite(guards, example, [bytes.subarray(0, cut), bytes.subarray(cut)])
    if (!isWanted(seen)) return `cut at ${cut}: ${seen}`
  }
}

const suites = {
  'regex/cases': patternProblem,
  'regex/masks': maskProblem,
  routes: routeProblem,
  'tokens/cases': tokensProblem,
  rate: rateProblem,
  limits: rateProblem,
  'texts/cases': textsProblem,
}

/** `files` has the parsed files of each suite. Returns how many cases ran, and what failed. */
export async function runCases(files) {
  const run = {}
  const failures = []
  for (const [name, problemOf] of Object.entries(suites)) {
    run[name] = 0
    for (const example of files[name].flatMap((file) => file.cases ?? file)) {
      run[name]++
      const problem = await Promise.try(problemOf, example).catch(
        (error) => `${error.stack ?? error}`,
      )
      if (problem !== undefined)
        failures.push(`${name}: ${example.title ?? example.name}: ${problem}`)
    }
  }
  return { run, failures }
}
