/**
 * What clients call things where there are several targets. Target names have neither `_`, `+` nor
 * `:`, so the first of these ends the name, and no two names can meet:
 *
 *   tools, prompts             target_name
 *   resources, templates       target+uri
 *   ids of servers' requests,
 *   and their progress tokens  "target:" and the JSON of what the server gave
 */

/** A name of a client, taken apart. */
interface TargetName {
  readonly target: string
  readonly name: string
}

const splitAt = (text: string, mark: string): TargetName | undefined => {
  const at = text.indexOf(mark)
  return at <= 0 ? undefined : { target: text.slice(0, at), name: text.slice(at + 1) }
}

export const clientName = (target: string, name: string): string => `${target}_${name}`
export const targetOfName = (name: string): TargetName | undefined => splitAt(name, '_')

export const clientUri = (target: string, uri: string): string => `${target}+${uri}`
export const targetOfUri = (uri: string): TargetName | undefined => splitAt(uri, '+')

/** `id`: the JSON of an id or a progress token. Gives JSON, too. */
export const clientId = (target: string, id: string): string => JSON.stringify(`${target}:${id}`)

/** The other way; undefined where the gateway has not made the id. */
export function targetOfId(id: string): TargetName | undefined {
  if (!id.startsWith('"')) return undefined
  const found = splitAt(JSON.parse(id) as string, ':')
  return found !== undefined && isId(found.name) ? found : undefined
}

function isId(json: string): boolean {
  if (/^-?\d{1,20}$/.test(json)) return true
  try {
    return typeof JSON.parse(json) === 'string'
  } catch {
    return false
  }
}
