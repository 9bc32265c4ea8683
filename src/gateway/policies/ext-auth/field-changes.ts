import type { HeaderValueOption } from '../../../../proto/gen/called/ext_authz_pb.ts'
import type { HeaderFields } from '../../../ground/exchange/exchange.ts'
import { isFieldName, isFieldValue } from '../../../ground/model/header-changes.ts'

type Action = 'append' | 'addIfAbsent' | 'overwrite' | 'overwriteIfExists'

/** A change of a header field that an authorization service or processor requests. */
export interface FieldChange {
  readonly name: string
  readonly value: string
  readonly action: Action
}

/** Actions by their protobuf number. 0 also means not set: then `append` decides. */
const actions: readonly Action[] = ['overwrite', 'addIfAbsent', 'overwrite', 'overwriteIfExists']
/** Fields that services cannot change: they frame the message, or the route decides them. */
const protectedNames = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
])

/** Converts the requested changes, without those that are not allowed or cannot be sent. */
export function fieldChanges(options: readonly HeaderValueOption[]): FieldChange[] {
  return options.flatMap(({ header, append, appendAction }): FieldChange[] => {
    if (header === undefined) return []
    const { key: name, value: text, rawValue } = header
    const value = Buffer.from(rawValue.length > 0 ? rawValue : Buffer.from(text)).toString('latin1')
    const isFit =
      isFieldName(name) && isFieldValue(value) && !protectedNames.has(name.toLowerCase())
    if (!isFit) return []
    const action = append === true ? 'append' : (actions[appendAction] ?? 'overwrite')
    return [{ name, value, action }]
  })
}

/**
 * Applies changes in order. As in Envoy, the last value of a name wins, because endpoint pickers list
 * the headers that they set before a copy of all headers. Several Set-Cookie fields are all kept.
 */
export function changeFields(fields: HeaderFields, changes: readonly FieldChange[]): void {
  let hasCookie = false
  for (const { name, value, action } of changes) {
    const exists = fields.has(name)
    if (action === 'addIfAbsent' && exists) continue
    if (action === 'overwriteIfExists' && !exists) continue
    const isCookie = name.toLowerCase() === 'set-cookie'
    if (action === 'append' || (isCookie && hasCookie)) fields.add(name, value)
    else fields.set(name, value)
    hasCookie ||= isCookie
  }
}
