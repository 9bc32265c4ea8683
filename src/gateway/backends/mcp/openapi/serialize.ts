/**
 * Writes arguments into requests, by the styles of OpenAPI 3. Each value is encoded for its place, so that it can
 * never become another part of the request. Values that would are refused.
 */
import { isObject } from '../../../../ground/base/json-object.ts'

/** `querystring` is the whole query (OpenAPI 3.2). */
export type ParameterPlace = 'path' | 'query' | 'querystring' | 'header' | 'cookie'

export interface ParameterPlan {
  readonly name: string
  readonly in: ParameterPlace
  readonly style: string
  readonly explode: boolean
  readonly allowReserved: boolean
  /** Whether the value is written as JSON (`content` of the parameter). */
  readonly isJson: boolean
}

/** Thrown if an argument cannot be sent. The message is for the model. */
export class ArgumentProblem extends Error {
  override readonly name = 'ArgumentProblem'
}

// Encoding ----------------------------------------------------------------------------------------

/** Encodes everything but unreserved characters (RFC 3986 section 2.3). @throws ArgumentProblem */
function encodeAll(text: string): string {
  if (!text.isWellFormed()) throw new ArgumentProblem('a text is not valid Unicode')
  return encodeURIComponent(text).replace(/[!'()*]/g, hexOf)
}

const hexOf = (one: string): string => `%${one.charCodeAt(0).toString(16).toUpperCase()}`

/** Leaves reserved characters, but those that end a value in a query. */
const encodeReserved = (text: string): string =>
  encodeAll(text).replace(/%(?:3A|2F|3F|5B|5D|40|21|24|27|28|29|2A|2C|3B|3D)/g, decodeURIComponent)

/** Returns the text of a primitive value. @throws ArgumentProblem for lists and objects */
function primitive(value: unknown, name: string): string {
  switch (typeof value) {
    case 'string':
      return value
    case 'number':
    case 'boolean':
      return String(value)
    default:
      throw new ArgumentProblem(`${name} must not have lists or objects inside of a list or object`)
  }
}

const isNothing = (value: unknown): boolean => value === undefined || value === null

/** Members of an object that have a value. */
const entriesOf = (value: object): [string, unknown][] =>
  Object.entries(value).filter(([, one]) => !isNothing(one))

// Paths -------------------------------------------------------------------------------------------

/** Replaces the parameters in a path template. @throws ArgumentProblem */
export function writePath(
  template: string,
  plans: readonly ParameterPlan[],
  values: Readonly<Record<string, unknown>>,
): string {
  const path = template.replace(/\{([^{}]+)\}/g, (_, name: string) => {
    const plan = plans.find((one) => one.in === 'path' && one.name === name)
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (plan === undefined || isNothing(value)) {
      throw new ArgumentProblem(`path.${name} is missing`)
    }
    return pathValue(plan, value)
  })
  // Several parameters may be in one segment.
  if (isClimbing(path)) throw new ArgumentProblem('the path has a dot segment')
  return path
}

function pathValue(plan: ParameterPlan, value: unknown): string {
  const where = `path.${plan.name}`
  const atom = (one: unknown): string => {
    const text = primitive(one, where)
    checkPathText(text, where)
    return encodeAll(text)
  }
  if (plan.isJson) return atom(JSON.stringify(value))
  const { explode, style } = plan
  const own = encodeAll(plan.name)
  const written = Array.isArray(value)
    ? listIn(style, explode, own, value.map(atom))
    : isObject(value)
      ? objectIn(
          style,
          explode,
          own,
          entriesOf(value).map(([key, one]) => [encodeAll(key), atom(one)]),
        )
      : `${style === 'label' ? '.' : style === 'matrix' ? `;${own}=` : ''}${atom(value)}`
  // An empty segment leads to another route.
  if (written === '') throw new ArgumentProblem(`${where} must not be empty`)
  return written
}

function listIn(style: string, explode: boolean, name: string, items: readonly string[]): string {
  if (items.length === 0) return ''
  if (style === 'label') return `.${items.join(explode ? '.' : ',')}`
  if (style !== 'matrix') return items.join(',')
  return explode ? items.map((one) => `;${name}=${one}`).join('') : `;${name}=${items.join(',')}`
}

function objectIn(
  style: string,
  explode: boolean,
  name: string,
  members: readonly (readonly [string, string])[],
): string {
  if (members.length === 0) return ''
  const pairs = members.map(([key, one]) => `${key}=${one}`)
  const flat = members.flat().join(',')
  if (style === 'label') return explode ? `.${pairs.join('.')}` : `.${flat}`
  if (style === 'matrix') return explode ? `;${pairs.join(';')}` : `;${name}=${flat}`
  return explode ? pairs.join(',') : flat
}

/** Servers may decode a path several times, and take `\` for `/`. */
const maxDecodings = 4

/** @throws ArgumentProblem if a value may lead to another path, whatever the server decodes */
function checkPathText(text: string, where: string): void {
  if (text === '') throw new ArgumentProblem(`${where} must not be empty`)
  if (hasControl(text)) throw new ArgumentProblem(`${where} must not have control characters`)
  if (isClimbing(text)) {
    throw new ArgumentProblem(
      `${where} must not have the segments "." or "..", or escapes of control characters`,
    )
  }
}

/** Whether a path has a dot segment or a control character after some decodings. */
function isClimbing(path: string): boolean {
  let decoded = path
  for (let round = 0; round < maxDecodings; round++) {
    if (decoded.split(/[/\\]/).some(isDotSegment) || hasControl(decoded)) return true
    const next = decodeLoosely(decoded)
    if (next === decoded) return false
    decoded = next
  }
  return false
}

/** Parameters of a segment (`..;x`) do not change what servers take it for. */
function isDotSegment(segment: string): boolean {
  const [name = ''] = decodeLoosely(segment).split(';', 1)
  return name === '.' || name === '..'
}

/** Decodes ASCII escapes; others, and invalid ones, stay. */
const decodeLoosely = (text: string): string =>
  text.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )

const hasControl = (text: string): boolean => /\p{Cc}/u.test(text)

// Queries -----------------------------------------------------------------------------------------

/** Returns the pairs of a query or of a form, joined by `&`; empty if there is no value. @throws ArgumentProblem */
export function writePairs(
  { name, style, explode, allowReserved, isJson }: ParameterPlan,
  value: unknown,
): string {
  if (isNothing(value)) return ''
  const encode = allowReserved ? encodeReserved : encodeAll
  const atom = (one: unknown) => encode(primitive(one, name))
  const own = encodeAll(name)
  if (isJson) return `${own}=${encode(JSON.stringify(value))}`
  if (style === 'deepObject' && isObject(value)) return deepPairs(own, value, encode, 0).join('&')
  const between = { spaceDelimited: '%20', pipeDelimited: '%7C', tabDelimited: '%09' }[style] ?? ','
  if (Array.isArray(value)) {
    const items = value.filter((one) => !isNothing(one)).map(atom)
    if (explode) return items.map((one) => `${own}=${one}`).join('&')
    return items.length === 0 ? '' : `${own}=${items.join(between)}`
  }
  if (!isObject(value)) return `${own}=${atom(value)}`
  const members = entriesOf(value).map(([key, one]) => [encodeAll(key), atom(one)] as const)
  if (explode) return members.map(([key, one]) => `${key}=${one}`).join('&')
  return members.length === 0 ? '' : `${own}=${members.flat().join(between)}`
}

/** Returns a whole query: JSON, or the pairs of a form. @throws ArgumentProblem */
export function writeQueryString({ name, isJson }: ParameterPlan, value: unknown): string {
  if (isNothing(value)) return ''
  if (isJson) return encodeAll(JSON.stringify(value))
  if (!isObject(value)) return encodeAll(primitive(value, `querystring.${name}`))
  const plan = {
    in: 'query',
    style: 'form',
    explode: true,
    allowReserved: false,
    isJson: false,
  } as const
  return entriesOf(value)
    .map(([key, one]) => writePairs({ ...plan, name: key, isJson: isObject(one) }, one))
    .filter((one) => one !== '')
    .join('&')
}

const maxDeep = 16

function deepPairs(
  prefix: string,
  value: object,
  encode: (text: string) => string,
  depth: number,
): string[] {
  if (depth > maxDeep) throw new ArgumentProblem('an object is nested too deeply')
  return entriesOf(value).flatMap(([key, one]) => {
    const name = `${prefix}%5B${encodeAll(key)}%5D`
    if (isObject(one)) return deepPairs(name, one, encode, depth + 1)
    const items = Array.isArray(one) ? one : [one]
    return items.map((item) => `${name}=${encode(primitive(item, key))}`)
  })
}

// Headers and cookies -----------------------------------------------------------------------------

/** Returns the value of a header; undefined if there is none. @throws ArgumentProblem */
export function writeHeader(plan: ParameterPlan, value: unknown): string | undefined {
  if (isNothing(value)) return undefined
  const where = `header.${plan.name}`
  const text = plan.isJson ? JSON.stringify(value) : headerText(plan, value, where)
  if (!/^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/.test(text)) {
    throw new ArgumentProblem(`${where} must be ASCII text in one line, without space around it`)
  }
  return text
}

function headerText({ explode }: ParameterPlan, value: unknown, where: string): string {
  const atom = (one: unknown) => primitive(one, where)
  if (Array.isArray(value)) return value.map(atom).join(',')
  if (!isObject(value)) return atom(value)
  const members = entriesOf(value).map(([key, one]) => [key, atom(one)])
  return members.map((pair) => pair.join(explode ? '=' : ',')).join(',')
}

/** Returns the pairs of a cookie. @throws ArgumentProblem */
export function writeCookie(plan: ParameterPlan, value: unknown): string {
  if (plan.style === 'cookie' && !plan.isJson) return plainCookie(plan, value)
  return writePairs({ ...plan, allowReserved: false }, value).replaceAll('&', '; ')
}

/** Style `cookie` of OpenAPI 3.2, which encodes nothing. */
function plainCookie({ name, explode }: ParameterPlan, value: unknown): string {
  if (isNothing(value)) return ''
  const where = `cookie.${name}`
  const atom = (one: unknown): string => {
    const text = primitive(one, where)
    // RFC 6265 section 4.1.1: cookie-octet.
    if (/^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/.test(text)) return text
    throw new ArgumentProblem(
      `${where} must be ASCII without spaces, commas, semicolons, quotes and backslashes`,
    )
  }
  const pair = (key: string, one: string) => `${encodeAll(key)}=${one}`
  if (Array.isArray(value)) {
    const items = value.filter((one) => !isNothing(one)).map(atom)
    if (explode) return items.map((one) => pair(name, one)).join('; ')
    return items.length === 0 ? '' : pair(name, items.join(','))
  }
  if (!isObject(value)) return pair(name, atom(value))
  const members = entriesOf(value).map(([key, one]) => [key, atom(one)] as const)
  if (explode) return members.map(([key, one]) => pair(key, one)).join('; ')
  return members.length === 0
    ? ''
    : pair(name, members.flatMap(([key, one]) => [encodeAll(key), one]).join(','))
}
