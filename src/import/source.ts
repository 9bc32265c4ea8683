/** What a reader of a source format provides. */
import { isObject } from '../base/json-object.ts'
import type { Conversion } from './conversion.ts'
import type { SourceDocument } from './field.ts'

export interface Source {
  readonly name: string
  /** Port of the created Gateway if the source names none. */
  readonly port: number
  /** Whether the document can only be of this source. */
  detects(document: SourceDocument): boolean
  convert(documents: readonly SourceDocument[], result: Conversion): void
}

/** Whether the document is an object that has one of these fields. */
export const hasField = ({ value }: SourceDocument, ...names: readonly string[]): boolean =>
  isObject(value) && names.some((name) => Object.hasOwn(value, name))

/** API group and kind of a Kubernetes object; undefined for other documents. */
export function objectKind({ value }: SourceDocument): { group: string; kind: string } | undefined {
  if (!isObject(value)) return undefined
  const { apiVersion, kind } = value
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return undefined
  return { group: apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '', kind }
}

/** `Kind namespace/name` of a Kubernetes object, for the report. */
export function labelOf({ value }: SourceDocument): string {
  const { kind = '', metadata } = value as {
    kind?: string
    metadata?: { name?: unknown; namespace?: unknown }
  }
  const { name = '', namespace } = metadata ?? {}
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
}
