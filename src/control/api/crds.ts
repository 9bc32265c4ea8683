/** The CustomResourceDefinitions of our kinds. */
import { type OpenApiSchema, shortened, toOpenApi } from '../../ground/schema/openapi.ts'
import type { ApiKind } from './kind.ts'
import { kinds } from './kinds.ts'

/** One CustomResourceDefinition for each of our kinds, in the order of `kinds`. */
export const crds = () => kinds.filter((row) => row.own).map(definitionOf)

/** The CustomResourceDefinition of a kind, as an apiextensions.k8s.io/v1 object. */
function definitionOf(row: ApiKind) {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${row.plural}.${row.group}` },
    spec: {
      group: row.group,
      scope: row.namespaced ? 'Namespaced' : 'Cluster',
      names: {
        kind: row.kind,
        listKind: `${row.kind}List`,
        plural: row.plural,
        singular: row.kind.toLowerCase(),
        shortNames: row.shortNames ?? [],
        categories: ['sluice'],
      },
      versions: row.versions.map((version, index) => ({
        name: version,
        served: true,
        storage: index === 0,
        subresources: { status: {} },
        additionalPrinterColumns: row.columns ?? [],
        schema: { openAPIV3Schema: objectSchema(row, version) },
      })),
    },
  }
}

/** `kubectl apply` stores a copy of a definition in an annotation, which may have 256 KiB. */
const maxSchemaLength = 255_500

/** The API server validates apiVersion, kind and metadata itself, so their schemas only give the type. */
function objectSchema(row: ApiKind, version: string): OpenApiSchema {
  const body = row.olderBodies?.[version] ?? row.body
  const whole = shortened(toOpenApi({ type: 'object', fields: body }), maxSchemaLength)
  return {
    description: row.doc,
    ...whole,
    properties: {
      apiVersion: { type: 'string', description: 'Group and version of the object.' },
      kind: { type: 'string', description: 'Kind of the object.' },
      metadata: { type: 'object' },
      ...(whole.properties as OpenApiSchema),
    },
  }
}
