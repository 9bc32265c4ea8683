/** Whether a message says more than this version understands. */
import type { Message } from '@bufbuild/protobuf'

const isMessage = (value: unknown): value is Message =>
  typeof value === 'object' && value !== null && '$typeName' in value

/** A choice of several messages is an object of its own, with the message inside. */
const isChoice = (value: unknown): value is { readonly value: unknown } =>
  typeof value === 'object' && value !== null && 'case' in value && 'value' in value

function isUnknownIn(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isUnknownIn)
  if (isMessage(value)) return hasUnknownFields(value)
  return isChoice(value) && isUnknownIn(value.value)
}

/** Has the message, or one inside it, fields that its schema here does not have? */
export function hasUnknownFields(message: Message): boolean {
  if (message.$unknown !== undefined && message.$unknown.length > 0) return true
  for (const value of Object.values(message)) if (isUnknownIn(value)) return true
  return false
}
