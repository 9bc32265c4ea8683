/** The CustomResourceDefinitions of our kinds. */
import { type OpenApiSchema, toOpenApi } from '../schema/openapi.ts'
import type { ApiKind, PrinterColumn } from './kind.ts'
import { kinds } from './kinds.ts'

/** A CustomResourceDefinition of apiextensions.k8s.io/v1, as far as ours use it. */
interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1'
  readonly kind: 'CustomResourceDefinition'
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly group: string
    readonly scope: 'Namespaced' | 'Cluster'
    readonly names: {
      readonly kind: string
      readonly listKind: string
      readonly plural: string
      readonly singular: string
      readonly shortNames: readonly string[]
      readonly categories: readonly string[]
    }
    readonly versions: readonly {
      readonly name: string
      readonly served: boolean
      readonly storage: boolean
      readonly subresources: { readonly status: object }
      readonly additionalPrinterColumns: readonly PrinterColumn[]
      readonly schema: { readonly openAPIV3Schema: OpenApiSchema }
    }[]
  }
}

/** One definition for each of our kinds, in the order of the table of kinds. */
export function crds(): CustomResourceDefinition[] {
  return kinds.filter((row) => row.own).map(definitionOf)
}

/** The same, under the name that Kubernetes has for them. */
export const customResourceDefinitions = crds

function definitionOf(row: ApiKind): CustomResourceDefinition {
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

/** apiVersion, kind and metadata are the API server's own: their schema says only what they are. */
function objectSchema(row: ApiKind, version: string): OpenApiSchema {
  const body = row.olderBodies?.[version] ?? row.body
  const whole = toOpenApi({ type: 'object', fields: body })
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
