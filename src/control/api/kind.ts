import type { Protocol } from '../../ground/model/resources.ts'
import {
  type AnyProperty,
  type ObjectOfProperties,
  object,
  required,
  type Schema,
  text,
} from '../../ground/schema/field.ts'
import { type ObjectMeta, objectMeta } from './metadata.ts'

type KindBody = Record<string, AnyProperty>

/** A column that kubectl shows for one of our kinds. */
export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'date'
  readonly description: string
  readonly jsonPath: string
}

/** Properties that only route kinds have. */
export interface RouteTraits {
  /** What the route sends to its backends: HTTP or gRPC requests, TCP connections or UDP datagrams. */
  readonly carries: 'http' | 'grpc' | 'tcp' | 'udp'
  /** Protocols of the listeners that routes of this kind can attach to. */
  readonly listeners: readonly Protocol[]
  /** The routes can also attach to TLS listeners in mode Terminate (Gateway API, TLSModeType). */
  readonly takesDecryptedTls?: true
}

/** One entry of the table of kinds. */
export interface ApiKind<Kind extends string = string, Body extends KindBody = KindBody> {
  readonly kind: Kind
  /** API group; empty for the core group. */
  readonly group: string
  /** Every version that can be read. Objects are converted to the first one. */
  readonly versions: readonly [string, ...string[]]
  readonly plural: string
  readonly namespaced: boolean
  /** Whether the kind is defined by this project. */
  readonly own: boolean
  /** Set for kinds of Kubernetes itself: unknown fields are kept, and null is read as not set. */
  readonly lenient?: boolean
  /** A one-sentence description for users. */
  readonly doc: string
  /** Fields other than apiVersion, kind and metadata. */
  readonly body: Body
  /** Bodies of the older versions that differ from `body`, by version. */
  readonly olderBodies?: Readonly<Record<string, KindBody>>
  readonly route?: RouteTraits
  readonly shortNames?: readonly string[]
  readonly columns?: readonly PrinterColumn[]
  /** Schema of the whole object in the first version. */
  readonly schema: Schema<unknown>
  /** Schema of the whole object in the given version. */
  schemaOf(version: string): Schema<unknown>
}

/** The type of a kind's objects after validation. */
export type ObjectOfKind<K> =
  K extends ApiKind<infer Kind, infer Body>
    ? {
        readonly apiVersion: string
        readonly kind: Kind
        readonly metadata: ObjectMeta
      } & ObjectOfProperties<Body>
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

/** Makes an entry of the table of kinds. */
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

/** Returns `group/version` with the first version; only the version for the core group. */
export function apiVersionOf(kind: Pick<ApiKind, 'group' | 'versions'>): string {
  return kind.group === '' ? kind.versions[0] : `${kind.group}/${kind.versions[0]}`
}
