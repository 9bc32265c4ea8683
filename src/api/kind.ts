import {
  type AnyProperty,
  type ObjectOf,
  object,
  required,
  type Schema,
  text,
} from '../schema/field.ts'
import { type ObjectMeta, objectMeta } from './metadata.ts'

type KindBody = Record<string, AnyProperty>

/** How kubectl shows a kind of ours. */
export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'date'
  readonly description: string
  readonly jsonPath: string
}

/** One row of the table of kinds. */
export interface ApiKind<Kind extends string = string, Body extends KindBody = KindBody> {
  readonly kind: Kind
  /** Empty for the core group. */
  readonly group: string
  /** Every version that is read; objects are normalised to the first. */
  readonly versions: readonly [string, ...string[]]
  readonly plural: string
  readonly namespaced: boolean
  /** Is the CRD ours? */
  readonly own: boolean
  /** Kubernetes owns it: unknown fields are kept, and null means absent. */
  readonly lenient?: boolean
  /** One sentence for people. */
  readonly doc: string
  /** Fields beside apiVersion, kind and metadata. */
  readonly body: Body
  /** Bodies of older versions where they differ. */
  readonly olderBodies?: Readonly<Record<string, KindBody>>
  readonly shortNames?: readonly string[]
  readonly columns?: readonly PrinterColumn[]
  /** The whole object, for the first version. */
  readonly schema: Schema<unknown>
  /** The whole object, as `version` has it. */
  schemaOf(version: string): Schema<unknown>
}

/** The type of the objects of a kind, after validation. */
export type ObjectOfKind<K> =
  K extends ApiKind<infer Kind, infer Body>
    ? {
        readonly apiVersion: string
        readonly kind: Kind
        readonly metadata: ObjectMeta
      } & ObjectOf<Body>
    : never

function wholeObject(kind: string, body: KindBody, open: boolean): Schema<unknown> {
  const fields = {
    apiVersion: required(text(), 'Group and version.'),
    kind: required(text(), 'Kind.'),
    metadata: required(objectMeta, 'Name, namespace, labels.'),
    ...body,
  }
  return object(kind, fields, { open })
}

/** Makes a row of the table of kinds. */
export function defineKind<const Kind extends string, Body extends KindBody>(
  row: Omit<ApiKind<Kind, Body>, 'schema' | 'schemaOf'>,
): ApiKind<Kind, Body> {
  const schema = wholeObject(row.kind, row.body, row.lenient === true)
  const older = new Map(
    Object.entries(row.olderBodies ?? {}).map(([version, body]) => [
      version,
      wholeObject(row.kind, body, row.lenient === true),
    ]),
  )
  return { ...row, schema, schemaOf: (version) => older.get(version) ?? schema }
}

/** `group/version`, or the version alone for the core group. */
export function apiVersionOf(kind: Pick<ApiKind, 'group' | 'versions'>): string {
  return kind.group === '' ? kind.versions[0] : `${kind.group}/${kind.versions[0]}`
}
