import type { AnyProperty } from './field.ts'

/** Formats a default as people write it in YAML. */
export function formatDefault(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Describes in a few sentences what a field does, its unit and its default. */
export function describeField(property: AnyProperty): string {
  const parts = [property.doc]
  if (property.unit !== undefined) parts.push(`Unit: ${property.unit}.`)
  if (property.default !== undefined) parts.push(`Default: ${formatDefault(property.default)}.`)
  return parts.join(' ')
}
