/** Every field of the API that refers to other objects is found as a reference. */
import { describe, expect, it } from 'vitest'
import { apiVersionOf } from '../../src/control/api/kind.ts'
import { kinds } from '../../src/control/api/kinds.ts'
import { referencesOf } from '../../src/control/api/references.ts'
import type { Node } from '../../src/ground/schema/field.ts'

/** A spec with one field, and the path of that field. */
interface OneField {
  readonly spec: unknown
  readonly path: string
}

/** A spec for each field of the schema whose name says that it refers to objects. */
function referringFields(node: Node): OneField[] {
  if (node.type === 'list') {
    return referringFields(node.items).map(({ spec, path }) => ({
      spec: [spec],
      path: `[0]${path}`,
    }))
  }
  if (node.type !== 'object') return []
  return Object.entries(node.fields).flatMap(([field, { schema }]) => {
    const inner = referringFields(schema.node)
    const all = isReferring(field) ? [{ spec: sample(schema.node), path: '' }, ...inner] : inner
    return all.map(({ spec, path }) => ({ spec: { [field]: spec }, path: `.${field}${path}` }))
  })
}

const isReferring = (field: string) => /(?:Refs?|Selectors?|ClassName)$/.test(field)

function sample(node: Node): unknown {
  if (node.type === 'list') return [sample(node.items)]
  if (node.type !== 'object') return 'a'
  const values = { group: '', kind: 'Service', name: 'a', matchLabels: { a: 'b' } }
  return Object.fromEntries(Object.entries(values).filter(([field]) => field in node.fields))
}

/** Parts of the Pods that the controller deploys, in a namespace that the object does not say. */
const isOfPod = (field: string) => field.startsWith('GatewayParameters spec.env')

describe('referencesOf', () => {
  it('finds every field of the API whose name says that it refers to objects', () => {
    const missed = kinds.flatMap((row) => {
      const node = row.body.spec?.schema.node
      return (node === undefined ? [] : referringFields(node)).flatMap(({ spec, path }) => {
        const object = { apiVersion: apiVersionOf(row), kind: row.kind, spec }
        const found = referencesOf(object, 'default').length > 0
        return found ? [] : [`${row.kind} spec${path}`]
      })
    })
    expect(missed.filter((field) => !isOfPod(field))).toEqual([])
  })
})
