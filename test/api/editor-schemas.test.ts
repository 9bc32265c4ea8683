/** The JSON Schemas that editors load: the examples satisfy them, and mistakes do not. */
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'

const root = join(import.meta.dirname, '..', '..')
const ajv = new Ajv2020({ strict: false, allErrors: true })
for (const file of globSync('docs/schema/*.json', { cwd: root })) {
  ajv.addSchema(JSON.parse(readFileSync(join(root, file), 'utf8')), basename(file))
}
const isManifest = ajv.getSchema('manifest.json')

const problemsOf = (object: unknown): string[] => {
  if (isManifest === undefined) throw new Error('docs/schema/manifest.json does not exist')
  isManifest(object)
  return (isManifest.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

/** The policy of this folder only exists after the steps of its guide. */
const added = 'examples/write-a-policy/policy/**'

const examples = globSync('examples/**/*.yaml', {
  cwd: root,
  exclude: ['**/node_modules', added],
}).filter((file) =>
  /^apiVersion: (sluice\.dev|gateway\.networking)/m.test(readFileSync(join(root, file), 'utf8')),
)

describe('the schema for manifests of any kind', () => {
  it.each(examples)('accepts %s, which names it in its first line', (file) => {
    const text = readFileSync(join(root, file), 'utf8')
    expect(text.split('\n')[0]).toMatch(
      /^# yaml-language-server: \$schema=\S+docs\/schema\/manifest\.json$/,
    )
    const objects = parseAllDocuments(text).map((document) => document.toJS())
    expect(objects.filter((one) => one !== null).flatMap(problemsOf)).toEqual([])
  })

  it.each([
    {
      title: 'an unknown field of a policy',
      object: policy({ targetRefs: [], trafic: {} }),
      problem: '/spec must NOT have additional properties',
    },
    {
      title: 'a wrong type in a route',
      object: route({ rules: [{ matches: 'all' }] }),
      problem: '/spec/rules/0/matches must be array',
    },
    {
      title: 'an object without a name of its kind',
      object: { apiVersion: 'sluice.dev/v1alpha1' },
      problem: " must have required property 'kind'",
    },
  ])('rejects $title', ({ object, problem }) => {
    expect(problemsOf(object)).toContain(problem)
  })

  it('accepts objects of other kinds, and older versions with other fields', () => {
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', spec: { replicas: 'x' } }
    expect(problemsOf(deployment)).toEqual([])
    const older = {
      ...route({}),
      apiVersion: 'gateway.networking.k8s.io/v1alpha2',
      spec: { any: 1 },
    }
    expect(problemsOf({ ...older, kind: 'TCPRoute' })).toEqual([])
  })
})

function policy(spec: object) {
  return { apiVersion: 'sluice.dev/v1alpha1', kind: 'GatewayPolicy', metadata: { name: 'a' }, spec }
}

function route(spec: object) {
  const apiVersion = 'gateway.networking.k8s.io/v1'
  return { apiVersion, kind: 'HTTPRoute', metadata: { name: 'a' }, spec }
}
