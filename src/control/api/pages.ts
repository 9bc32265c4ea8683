/** Generates the CRDs, editor schemas, reference pages and the table of supported fields. */

import { gatewayGroup } from '../../ground/model/api-names.ts'
import { toJsonSchema } from '../../ground/schema/json-schema.ts'
import { cell, table, typeSections } from '../../ground/schema/reference-page.ts'
import { type FieldStatus, listFields } from './fields.ts'
import { type ApiKind, apiVersionOf } from './kind.ts'
import { kinds } from './kinds.ts'

const ownKinds = (): readonly ApiKind[] => kinds.filter((row) => row.own)

/** Converts a kind to a file name: `GatewayBackend` becomes `gateway-backend`, `HTTPRoute` `http-route`. */
function fileName(kind: string): string {
  return kind.replaceAll(/(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, '-').toLowerCase()
}

/** A reference page for each of our kinds, keyed by file name without extension. */
export function referencePages(): ReadonlyMap<string, string> {
  return new Map(ownKinds().map((row) => [fileName(row.kind), referencePage(row)]))
}

function referencePage(row: ApiKind): string {
  const short = (row.shortNames ?? []).map((name) => `\`${name}\``).join(', ')
  const facts = `\`apiVersion: ${apiVersionOf(row)}\`, \`kind: ${row.kind}\`; namespaced; short name ${short}.`
  const root = { type: 'object', name: row.kind, fields: row.body } as const
  return `# ${row.kind}\n\n${row.doc}\n\n${facts}\n\n${typeSections(root)}`
}

/**
 * JSON Schemas for editors, keyed by file name without extension: one for each of our kinds and of the
 * Gateway API, and `manifest` for files with objects of any kind.
 */
export function editorSchemas(): ReadonlyMap<string, object> {
  const rows: readonly ApiKind[] = kinds.filter(({ own, group }) => own || group === gatewayGroup)
  return new Map([
    ...rows.map((row) => [fileName(row.kind), editorSchema(row)] as const),
    ['manifest', manifestSchema(rows)],
  ])
}

const dialect = 'https://json-schema.org/draft/2020-12/schema'

function editorSchema(row: ApiKind): object {
  return {
    $schema: dialect,
    title: row.kind,
    description: row.doc,
    ...withDefinitions(
      toJsonSchema({
        type: 'object',
        fields: {
          apiVersion: fixed('Group and version.', ...sameVersions(row)),
          kind: fixed('Kind.', row.kind),
          metadata: {
            doc: 'Name, namespace, labels.',
            required: true,
            schema: { node: { type: 'json', objectOnly: true } },
          },
          ...row.body,
        },
      }),
    ),
  }
}

interface JsonSchema {
  readonly [keyword: string]: unknown
}

/** Writes objects that occur at several places once, in `$defs`: a kind would otherwise have megabytes. */
function withDefinitions(schema: JsonSchema): JsonSchema {
  const counts = new Map<string, number>()
  const count = (one: JsonSchema): JsonSchema => {
    const text = JSON.stringify(withoutDescription(one))
    if (one.properties !== undefined) counts.set(text, (counts.get(text) ?? 0) + 1)
    return changeParts(one, count)
  }
  changeParts(schema, count)
  const names = new Map<string, string>()
  const $defs: Record<string, JsonSchema> = {}
  const refer = (one: JsonSchema): JsonSchema => {
    const body = withoutDescription(one)
    const text = JSON.stringify(body)
    if ((counts.get(text) ?? 0) < 2) return changeParts(one, refer)
    const name = names.get(text) ?? `object${names.size + 1}`
    if (!names.has(text)) {
      names.set(text, name)
      $defs[name] = changeParts(body, refer)
    }
    const { description } = one
    return { ...(description !== undefined && { description }), $ref: `#/$defs/${name}` }
  }
  return { ...changeParts(schema, refer), ...(names.size > 0 && { $defs }) }
}

/** What a schema says without regard to the place where it stands. */
const withoutDescription = ({ description: _, ...body }: JsonSchema): JsonSchema => body

/** Changes the schemas of fields, items and values. */
function changeParts(schema: JsonSchema, change: (part: JsonSchema) => JsonSchema): JsonSchema {
  const { properties, items, additionalProperties: values } = schema
  const fields = Object.entries((properties ?? {}) as Record<string, JsonSchema>)
  return {
    ...schema,
    ...(properties !== undefined && {
      properties: Object.fromEntries(fields.map(([name, one]) => [name, change(one)])),
    }),
    ...(items !== undefined && { items: change(items as JsonSchema) }),
    ...(typeof values === 'object' && { additionalProperties: change(values as JsonSchema) }),
  }
}

/** Selects the schema by apiVersion and kind. Objects of other kinds are not checked. */
function manifestSchema(rows: readonly ApiKind[]): object {
  return {
    $schema: dialect,
    title: 'Manifest',
    description: 'An object of any kind. Kinds of Sluice and of the Gateway API are checked.',
    type: 'object',
    required: ['apiVersion', 'kind'],
    allOf: rows.map((row) => ({
      if: {
        properties: { apiVersion: { enum: sameVersions(row) }, kind: { const: row.kind } },
        required: ['apiVersion', 'kind'],
      },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
      then: { $ref: `${fileName(row.kind)}.json` },
    })),
  }
}

/** The versions whose objects have the fields of the newest one. */
const sameVersions = ({ group, versions, olderBodies = {} }: ApiKind): string[] =>
  versions.filter((version) => !(version in olderBodies)).map((version) => `${group}/${version}`)

const fixed = (doc: string, ...values: string[]) =>
  ({ doc, required: true, schema: { node: { type: 'text', values } } }) as const

const words = {
  works: 'works',
  pending: 'not supported yet',
  schema: 'schema only',
} as const

/** The page that lists every field of the API and whether it works. */
export function supportPage(): string {
  const fields = listFields()
  const parts = ownKinds().map(({ kind }) => supportSection(kind, fields))
  return `# Supported fields\n\n${supportIntroduction}\n${parts.join('\n')}`
}

const supportIntroduction = `Every field of the kinds of Sluice, and whether this version supports it:

- **works**: the field works as its reference page describes.
- **not supported yet**: the field is validated but has no effect, and the conditions of an object that sets it
  report this. If the field is marked *security*, requests that it covers fail with 500, because a protection
  that is not enforced must never let traffic through.
- **schema only**: the field is validated, and nothing reads it yet.
`

function supportSection(kind: string, all: readonly FieldStatus[]): string {
  const fields = all.filter((field) => field.kind === kind)
  const owners = Map.groupBy(fields, ({ owner }) => owner)
  const rows = [...owners].flatMap(([owner, members]) =>
    [...Map.groupBy(members, ({ field }) => field)].map(([field, places]) => [
      `\`${owner}.${field}\``,
      cell(places[0]?.type ?? ''),
      statusOf(places),
    ]),
  )
  return `## ${kind}\n\n${table(['Field', 'Type', 'Status'], rows)}`
}

/** The status of a field. If it differs between the places that use the field's type, names each place. */
function statusOf(places: readonly FieldStatus[]): string {
  const byStatus = Map.groupBy(
    places,
    ({ support, security }) =>
      `${words[support]}${security && support !== 'works' ? ', *security*' : ''}`,
  )
  const [only, ...others] = byStatus.keys()
  if (others.length === 0) return only ?? ''
  return [...byStatus]
    .map(([status, at]) => `${status} (${at.map(({ path }) => `\`${path}\``).join(', ')})`)
    .join('; ')
}
