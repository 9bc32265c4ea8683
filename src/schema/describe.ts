import type { AnyProperty } from './field.ts'

/** A default as people write it in YAML. */
export function formatDefault(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** What a field does, its unit and its default, in a few sentences. */
export function describeField(property: AnyProperty): string {
  const parts = [property.doc]
  if (property.unit !== undefined) parts.push(`Unit: ${property.unit}.`)
  if (property.default !== undefined) parts.push(`Default: ${formatDefault(property.default)}.`)
  return parts.join(' ')
}
