import { hexDigest } from '../../../ground/base/digest.ts'

/**
 * Names that clients see if there are several targets. Target names contain neither `_`, `+` nor `:`.
 * So the first of these characters in a name ends the target name, and names cannot collide:
 *
 *   tools, prompts             target_name
 *   resources, templates       target+uri
 *   those of MCP Apps          ui://target+rest, because hosts show only resources with this scheme
 *   ids of servers' requests,
 *   and their progress tokens  "target:" and the JSON of the id or token from the server
 */

interface TargetName {
  readonly target: string
  readonly name: string
}

const splitAt = (text: string, mark: string): TargetName | undefined => {
  const at = text.indexOf(mark)
  return at <= 0 ? undefined : { target: text.slice(0, at), name: text.slice(at + 1) }
}

/** Maximum length of a name with a prefix, which is the limit of model APIs for names of tools. */
const maxNameLength = 64
/** Characters of the digest at the end of a shortened name, which make it unique. */
const digestLength = 16

/** Returns the name with its target. The end of one that is too long is replaced by a digest of the whole. */
export function clientName(target: string, name: string): string {
  const whole = `${target}_${name}`
  if (whole.length <= maxNameLength) return whole
  const digest = hexDigest('sha256', whole).slice(0, digestLength)
  return `${whole.slice(0, maxNameLength - digestLength - 1)}_${digest}`
}

const shortenedEnd = new RegExp(`_[0-9a-f]{${digestLength}}$`)

/** Whether `clientName` may have shortened the name, so that only the lists of targets say what it means. */
export const mayBeShortened = (name: string): boolean =>
  name.length === maxNameLength && shortenedEnd.test(name)

export const targetOfName = (name: string): TargetName | undefined => splitAt(name, '_')

/** Scheme of the resources of MCP Apps. No other name for clients begins with it. */
const uiScheme = 'ui://'

export const clientUri = (target: string, uri: string): string =>
  uri.startsWith(uiScheme)
    ? `${uiScheme}${target}+${uri.slice(uiScheme.length)}`
    : `${target}+${uri}`

/** Reverses `clientUri`. */
export function targetOfUri(uri: string): TargetName | undefined {
  if (!uri.startsWith(uiScheme)) return splitAt(uri, '+')
  const found = splitAt(uri.slice(uiScheme.length), '+')
  return found && { target: found.target, name: `${uiScheme}${found.name}` }
}

/** Returns the id or progress token for the client as JSON. `id` is the JSON from the server. */
export const clientId = (target: string, id: string): string => JSON.stringify(`${target}:${id}`)

/** Reverses `clientId`. Returns undefined if the gateway did not make the id. */
export function targetOfId(id: string): TargetName | undefined {
  if (!id.startsWith('"')) return undefined
  const found = splitAt(JSON.parse(id) as string, ':')
  return found !== undefined && isId(found.name) ? found : undefined
}

/** Whether the text is the JSON of an id of a request. */
export function isId(json: string): boolean {
  if (/^-?\d{1,20}$/.test(json)) return true
  try {
    return typeof JSON.parse(json) === 'string'
  } catch {
    return false
  }
}

/** Encodes one text per target, such as a cursor, as one text that the client sends back. */
export function writePairs(pairs: Iterable<readonly [target: string, text: string]>): string {
  return Buffer.from(JSON.stringify([...pairs])).toString('base64url')
}

/** Reverses `writePairs`. Returns undefined if the gateway did not write the text. */
export function readPairs(text: string): ReadonlyMap<string, string> | undefined {
  try {
    const pairs: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(pairs) && pairs.every(isPair) ? new Map(pairs) : undefined
  } catch {
    return undefined
  }
}

function isPair(value: unknown): value is readonly [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((one) => typeof one === 'string')
}
