/** What a reader of a source format provides. */
import { isObject, type JsonObject } from '../../ground/base/json-object.ts'
import type { Conversion } from './conversion.ts'
import type { SourceDocument } from './field.ts'

export interface ImportSource {
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

/** The fields of a document that may not be an object. */
export const fieldsOf = ({ value }: SourceDocument): JsonObject => (isObject(value) ? value : {})

/** `Kind namespace/name` of a Kubernetes object, for the report. */
export function labelOf(document: SourceDocument): string {
  const { kind, metadata } = fieldsOf(document)
  const { name, namespace } = isObject(metadata) ? metadata : {}
  const text = (value: unknown) => (typeof value === 'string' ? value : '')
  return `${text(kind)} ${typeof namespace === 'string' ? `${namespace}/` : ''}${text(name)}`
}
