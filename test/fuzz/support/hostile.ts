/** Changes of parsed objects that bytes rarely reach: values of the wrong type in the right place. */
import type { Random } from './random.ts'

type Fields = Record<string, unknown>

const texts = [
  ...['', ' ', 'a', '*', '*.', '.', '/', '//', '..', '%', '%zz', '\0', '\n', '\r\nx: y', '{{', '('],
  ...['a'.repeat(254), 'a'.repeat(70_000), '\ud800', 'é', '\u{1f600}', '__proto__', 'constructor'],
  ...['0', '-1', '1e9', '1Gi', '2Mi', '-1Ki', '1e400', '0s', '99999h', '99999h99999h', '1y', 'NaN'],
  ...['999.999.999.999', '::', '[::1]', '10.0.0.0/99', 'http://[', 'https://a:99999', 'data:,'],
  ...[
    'a(b',
    '(a+)+$',
    'a{1000}{1000}',
    '[[:alpha:]]',
    'request.',
    'jwt.x.y[',
    '1 + "a"',
    'x'.repeat(9),
  ],
  ...[
    '!!!!',
    'AAAA',
    '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----',
    '{"keys": [{}]}',
  ],
  ...[
    '{"keys": [null, 1, {"kty": 5}, {"kty": "RSA", "n": "", "e": "AQAB"}]}',
    'Gateway',
    'default',
  ],
]
const numbers = [
  ...[0, -0, 1, -1, 0.5, 80, 443, 65_535, 65_536, 99_999, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53],
  ...[-(2 ** 53), 1e308],
]
const keys = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'then',
  '',
  'a.b',
]
keys.push('length', 'toJSON', 'valueOf', '0', '[]', '{}', 'a'.repeat(300), '\u2028', '"', '\0')

function nested(random: Random): unknown {
  let value: unknown = random.oneIn(2) ? {} : 'x'
  for (let depth = random.length(2000); depth > 0; depth--) {
    value = random.oneIn(2) ? [value] : { a: value }
  }
  return value
}

function hostileValue(random: Random): unknown {
  switch (random.below(9)) {
    case 0:
      return random.pick([null, true, false])
    case 1:
    case 2:
      return random.pick(numbers)
    case 3:
      return random.pick([{}, [], [[]], [null], { a: null }, [{}], { name: {} }, [''], [0]])
    case 4:
      return nested(random)
    case 5:
      return Array.from({ length: random.length(300) }, () => random.pick(texts))
    case 6:
      return withKey({}, random.pick(keys), random.oneIn(2) ? random.pick(texts) : { a: 'b' })
    default:
      return random.pick(texts)
  }
}

/** An own property of any name: assignment would set the prototype. */
function withKey(fields: Fields, key: string, value: unknown): Fields {
  const copy = { ...fields }
  Object.defineProperty(copy, key, { value, enumerable: true, writable: true, configurable: true })
  return copy
}

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null

/** A copy with one change somewhere below. `others` are values that may be put anywhere. */
function changed(value: unknown, random: Random, others: readonly unknown[]): unknown {
  if (!isFields(value) || random.oneIn(12)) return replaced(value, random, others)
  if (Array.isArray(value)) {
    const list = value as unknown[]
    const at = random.below(list.length + 1)
    if (at === list.length || random.oneIn(8)) return [...list, list[0] ?? hostileValue(random)]
    if (random.oneIn(8)) return list.toSpliced(at, 1)
    return list.with(at, changed(list[at], random, others))
  }
  const names = Object.keys(value)
  if (names.length === 0 || random.oneIn(10)) {
    const key = random.oneIn(2) ? random.pick(keys) : 'policies'
    return withKey(value, key, replaced(undefined, random, others))
  }
  const name = random.pick(names)
  if (random.oneIn(10)) {
    const { [name]: _, ...rest } = value
    return rest
  }
  return withKey(value, name, changed(value[name], random, others))
}

function replaced(value: unknown, random: Random, others: readonly unknown[]): unknown {
  if (others.length > 0 && random.oneIn(4)) return random.pick(others)
  if (typeof value === 'number' && random.oneIn(2)) return random.pick(numbers)
  if (typeof value === 'string' && random.oneIn(2)) return random.pick(texts)
  return hostileValue(random)
}

/** Copies of objects with one to six changes. */
export function hostile(
  objects: readonly unknown[],
  random: Random,
  others: readonly unknown[] = [],
): unknown[] {
  return objects.map((object) => {
    let copy = object
    for (let left = 1 + random.length(6); left > 0; left--) copy = changed(copy, random, others)
    return copy
  })
}
