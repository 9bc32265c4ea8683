/** Header fields as an authorization service writes them. */
import type { HeaderValueOption } from '../../../proto/gen/called/ext_authz_pb.ts'
import type { HeaderFields } from '../../exchange/exchange.ts'
import { isFieldName, isFieldValue } from '../../model/header-changes.ts'

type Action = 'append' | 'addIfAbsent' | 'overwrite' | 'overwriteIfExists'

export interface FieldChange {
  readonly name: string
  readonly value: string
  readonly action: Action
}

/** By number; 0 cannot be told from unset, which overwrites unless `append` says otherwise. */
const actions: readonly Action[] = ['overwrite', 'addIfAbsent', 'overwrite', 'overwriteIfExists']
/** Whoever sends a message frames it; Host decides where requests go, which the route does. */
const notTheirs = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'upgrade'])

/** Those that can be sent. */
export function fieldChanges(options: readonly HeaderValueOption[]): FieldChange[] {
  return options.flatMap(({ header, append, appendAction }): FieldChange[] => {
    if (header === undefined) return []
    const { key: name, value: text, rawValue } = header
    const value = Buffer.from(rawValue.length > 0 ? rawValue : Buffer.from(text)).toString('latin1')
    const isFit = isFieldName(name) && isFieldValue(value) && !notTheirs.has(name.toLowerCase())
    if (!isFit) return []
    const action = append === true ? 'append' : (actions[appendAction] ?? 'overwrite')
    return [{ name, value, action }]
  })
}

/**
 * A later value of a name overwrites an earlier one, as in Envoy: endpoint pickers list all fields of
 * a response behind those that they set. Cookies of one list stand beside each other.
 */
export function changeFields(fields: HeaderFields, changes: readonly FieldChange[]): void {
  let hasCookie = false
  for (const { name, value, action } of changes) {
    const isThere = fields.has(name)
    if (action === 'addIfAbsent' && isThere) continue
    if (action === 'overwriteIfExists' && !isThere) continue
    const isCookie = name.toLowerCase() === 'set-cookie'
    if (action === 'append' || (isCookie && hasCookie)) fields.add(name, value)
    else fields.set(name, value)
    hasCookie ||= isCookie
  }
}
