/** Bodies in which every member that a format lists by its place has a different text. */
import type { JsonObject } from '../../src/engines/messages/json/json.ts'
import type { Place } from '../../src/engines/messages/mask/places.ts'

const separator = /\.(?![^[]*\])/
const encodedMembers = new Set(['file_data', 'bytes'])
const step = /^(\w+)(?:([[{])([^\]}]*)[\]}])?$/

/** Builds the value at the rest of a path. */
function valueAt([first, ...rest]: readonly string[], canary: string, holder: string): unknown {
  if (first === undefined) {
    if (holder === 'arguments') return JSON.stringify({ a: canary })
    const isEncoded = encodedMembers.has(holder)
    return isEncoded ? Buffer.from(canary).toString('base64') : canary
  }
  const [, name = '', kind, settings = ''] = step.exec(first) ?? []
  const inner = valueAt(rest, canary, name)
  if (kind === undefined) return { [name]: inner }
  const fields = Object.fromEntries(
    settings
      .split(',')
      .filter((one) => one !== '')
      .map((one) => [one.split('=')[0], settingOf(one.split('=')[1] ?? '')]),
  )
  const object = { ...fields, ...(inner as object) }
  return { [name]: kind === '[' ? [object] : object }
}

const settingOf = (text: string): unknown =>
  text === 'true' ? true : /^\d+$/.test(text) ? Number(text) : text

/** Merges bodies: lists follow each other. */
export function merged(a: unknown, b: unknown): unknown {
  if (Array.isArray(a) && Array.isArray(b)) return [...a, ...b]
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return b
  const result: Record<string, unknown> = { ...a }
  for (const [name, value] of Object.entries(b)) {
    result[name] = name in result ? merged(result[name], value) : value
  }
  return result
}

/** Returns a body with a text for each path, and the places of the texts. */
export function placedBody(
  paths: Readonly<Partial<Record<Place, readonly string[]>>>,
  textOf: (index: number) => string = (index) => `canary${index}x`,
) {
  let body: JsonObject = { model: 'm' }
  const canaries = new Map<string, Place>()
  for (const [place, members] of Object.entries(paths)) {
    for (const path of members ?? []) {
      const canary = textOf(canaries.size)
      canaries.set(canary, place as Place)
      const part = valueAt(path.split(separator), canary, '')
      const data = path.includes('inlineData') ? encodeData(part, canary) : part
      body = merged(body, data) as JsonObject
    }
  }
  return { body, canaries }
}

const encodeData = (part: unknown, canary: string): unknown =>
  JSON.parse(JSON.stringify(part).replace(canary, Buffer.from(canary).toString('base64')))
