import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { crds } from '../../src/control/api/crds.ts'
import { boundCases } from '../api/cases/bounds.ts'
import { budgetCases } from '../api/cases/budgets.ts'
import { byTitle, type CaseGroup, type SchemaCase } from '../api/cases/case.ts'
import { credentialCases } from '../api/cases/credentials.ts'
import { groupCases } from '../api/cases/groups.ts'
import { refusalCases } from '../api/cases/refusals.ts'
import { requiredCases } from '../api/cases/required.ts'
import { objectOf, problemsOf } from '../api/offline.ts'
import { type ApiServer, apiServerParts, startApiServer } from '../support/api-server.ts'
import { type Crd, installCrds, readCrds } from '../support/crds.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

const run = promisify(execFile)
const apiVersion = 'sluice.dev/v1alpha1'
const plurals = {
  GatewayBackend: 'gatewaybackends',
  AgentgatewayModel: 'agentgatewaymodels',
  GatewayPolicy: 'gatewaypolicies',
  GatewayBudget: 'gatewaybudgets',
  GatewayParameters: 'gatewayparameters',
} as const
type OurKind = keyof typeof plurals

const collection = (kind: OurKind, namespace = 'default') =>
  `/apis/${apiVersion}/namespaces/${namespace}/${plurals[kind]}`

/** A valid spec of each kind, and a change to it that is valid too. */
const examples = [
  [
    'GatewayBackend',
    { static: { host: 'a.example', port: 80 } },
    { static: { host: 'b.example', port: 81 } },
  ],
  [
    'GatewayPolicy',
    {
      targetRefs: [{ group: '', kind: 'Service', name: 'a' }],
      traffic: { directResponse: { status: 200 } },
    },
    {
      targetRefs: [{ group: '', kind: 'Service', name: 'b' }],
      traffic: { directResponse: { status: 404, body: 'no' } },
    },
  ],
  [
    'AgentgatewayModel',
    { parentRefs: [{ name: 'edge' }], provider: 'OpenAI' },
    {
      parentRefs: [{ name: 'edge' }],
      virtualModel: {
        conditional: {
          targets: [{ modelRef: { name: 'a' }, when: 'true' }, { modelRef: { name: 'b' } }],
        },
      },
    },
  ],
  ['GatewayParameters', { logging: { level: 'info' } }, { shutdown: { min: 1, max: 2 } }],
] as const satisfies readonly (readonly [OurKind, object, object])[]

const kindsByShortName = {
  gwbe: 'GatewayBackend',
  agmodel: 'AgentgatewayModel',
  gwpol: 'GatewayPolicy',
} as const

/** The title of a group: its id in brackets if it is a row of the coverage table. */
const titleOf = ({ id, shows = [] }: CaseGroup) =>
  [id, ...shows].map((row) => (row.includes('.') ? `[${row}]` : row)).join(' ')

describeWithParts(
  [...apiServerParts, 'gateway-api-crds', 'inference-crds', 'kubectl'],
  'a cluster with our custom resource definitions, the Gateway API and its inference extension',
  () => {
    let server: ApiServer
    beforeAll(async () => {
      server = await startApiServer()
      await installCrds(server, crds() as readonly Crd[])
      await installCrds(server, readCrds(join(partPath('gateway-api-crds'), 'standard')))
      const inference = readCrds(partPath('inference-crds'))
      await installCrds(
        server,
        inference.filter((crd) => crd.spec.group === 'inference.networking.k8s.io'),
      )
    }, 150_000)
    afterAll(() => server?.stop())

    it.each([
      ['gateway.networking.k8s.io/v1', 'gatewayclasses'],
      ['gateway.networking.k8s.io/v1', 'gateways'],
      ['gateway.networking.k8s.io/v1', 'listenersets'],
      ['gateway.networking.k8s.io/v1', 'httproutes'],
      ['gateway.networking.k8s.io/v1', 'grpcroutes'],
      ['gateway.networking.k8s.io/v1', 'tlsroutes'],
      ['gateway.networking.k8s.io/v1', 'tcproutes'],
      ['gateway.networking.k8s.io/v1', 'udproutes'],
      ['gateway.networking.k8s.io/v1', 'backendtlspolicies'],
      ['gateway.networking.k8s.io/v1', 'referencegrants'],
      ['inference.networking.k8s.io/v1', 'inferencepools'],
    ])('serves %s %s', async (version, plural) => {
      const { status, body } = await server.request('GET', `/apis/${version}/${plural}`)
      expect(status).toBe(200)
      expect(body).toMatchObject({ apiVersion: version, items: [] })
    })

    it('refuses a route that the schema of the Gateway API forbids', async () => {
      const { status, body } = await server.request(
        'POST',
        '/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes',
        {
          apiVersion: 'gateway.networking.k8s.io/v1',
          kind: 'HTTPRoute',
          metadata: { name: 'r' },
          spec: { rules: [{ matches: [{ path: { type: 'PathPrefix', value: 'no-slash' } }] }] },
        },
      )
      expect(status).toBe(422)
      expect(body.message).toContain("must be an absolute path and start with '/'")
    })

    describe.each(examples)('%s', (kind, spec, changed) => {
      it(`[endpoint.${kind}] is created, read, updated, listed and deleted`, async () => {
        const created = await server.request(
          'POST',
          collection(kind),
          objectOf({ kind, spec }, 'one'),
        )
        expect(created.status).toBe(201)
        expect(created.body.spec).toEqual(spec)

        const updated = await server.request('PUT', `${collection(kind)}/one`, {
          ...created.body,
          spec: changed,
        })
        expect(updated.status).toBe(200)
        expect(updated.body.metadata.generation).toBe(2)
        const read = await server.request('GET', `${collection(kind)}/one`)
        expect(read.body.spec).toEqual(changed)

        const listed = await server.request('GET', collection(kind))
        expect(listed.body.items).toHaveLength(1)
        expect(listed.body.items[0].spec).toEqual(changed)

        expect((await server.request('DELETE', `${collection(kind)}/one`)).status).toBe(200)
        expect((await server.request('GET', `${collection(kind)}/one`)).status).toBe(404)
      })

      it(`[rule.lists] is served as ${kind}List with list metadata`, async () => {
        const { body } = await server.request('GET', `/apis/${apiVersion}/${plurals[kind]}`)
        expect(body).toMatchObject({ apiVersion, kind: `${kind}List`, items: [] })
        expect(body.metadata.resourceVersion).toMatch(/^\d+$/)
      })

      it('[rule.objectMeta] is namespaced, carries apiVersion and kind, and leaves metadata optional', async () => {
        const resources = (await server.request('GET', `/apis/${apiVersion}`)).body.resources
        const resource = resources.find((entry: { name: string }) => entry.name === plurals[kind])
        expect(resource).toMatchObject({ namespaced: true, kind })

        const created = await server.request(
          'POST',
          collection(kind),
          objectOf({ kind, spec }, 'two'),
        )
        expect(created.body).toMatchObject({ apiVersion, kind, metadata: { namespace: 'default' } })
        await server.request('DELETE', `${collection(kind)}/two`)

        const other = { ...objectOf({ kind, spec }, 'three'), kind: 'Other' }
        const refused = await server.request('POST', collection(kind), other)
        expect(refused.status).toBe(422)
        expect(causesOf(refused.body)).toMatchObject([{ field: 'kind' }])

        const crd = crds().find((one) => one.spec.names.kind === kind)
        expect(crd?.spec.versions[0]?.schema.openAPIV3Schema.required).not.toContain('metadata')
      })

      it('[version.v1alpha1] is served as v1alpha1 only, and another version is named when it is refused', async () => {
        const groups = await server.request('GET', '/apis/sluice.dev')
        expect(groups.body.versions).toEqual([
          { groupVersion: 'sluice.dev/v1alpha1', version: 'v1alpha1' },
        ])
        const later = { ...objectOf({ kind, spec }, 'later'), apiVersion: 'sluice.dev/v1beta1' }
        const refused = await server.request('POST', collection(kind), later)
        expect(refused.status).toBe(400)
        expect(refused.body.message).toContain('sluice.dev/v1beta1')
        expect(refused.body.message).toContain('sluice.dev/v1alpha1')
        expect(problemsOf(later)).toEqual([
          {
            path: 'apiVersion',
            message: `sluice.dev/v1beta1 is not known for ${kind}; known: sluice.dev/v1alpha1`,
          },
        ])
      })

      it('refuses an unknown field', async () => {
        const unknown = objectOf({ kind, spec: { ...spec, colour: 'red' } })
        const path = `${collection(kind)}?fieldValidation=Strict`
        const { status, body } = await server.request('POST', path, unknown)
        expect(status).toBe(400)
        expect(body.message).toContain('unknown field "spec.colour"')
      })
    })

    it.each(['labels', 'annotations'])('refuses null in %s of an overlay', async (field) => {
      const overlay = (entries: object) => ({
        kind: 'GatewayParameters' as const,
        spec: { service: { metadata: { [field]: entries } } },
        written: '',
      })
      expect(causesOf((await dryRun(server, overlay({ a: 'b' }))).body)).toEqual([])
      const { body } = await dryRun(server, overlay({ a: 'b', c: null }))
      expect(causesOf(body)).toMatchObject([
        {
          field: `spec.service.metadata.${field}`,
          message: expect.stringContaining('no entry may be null'),
        },
      ])
    })

    it.each([
      ['gwbe', { static: { host: 'a.example', port: 80 } }, ['NAME', 'ACCEPTED', 'REASON', 'AGE']],
      ['agmodel', examples[2][1], ['NAME', 'ACCEPTED', 'REASON', 'AGE']],
      ['gwpol', examples[1][1], ['NAME', 'ACCEPTED', 'ATTACHED', 'REASON', 'AGE']],
    ] as const)(
      'lists %s by its short name, with its conditions in columns',
      async (short, spec, columns) => {
        const kind = kindsByShortName[short]
        const path = `${collection(kind)}/shown`
        await server.request('POST', collection(kind), objectOf({ kind, spec }, 'shown'))
        const conditions = ['Accepted', 'Attached'].map((type) => ({
          type,
          status: type === 'Accepted' ? 'True' : 'False',
          reason: type,
          message: '',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        }))
        const controllerName = 'sluice.dev/gateway-controller'
        const status = {
          gwbe: { conditions },
          agmodel: { parents: [{ parentRef: { name: 'g' }, controllerName, conditions }] },
          gwpol: { ancestors: [{ ancestorRef: { name: 'g' }, controllerName, conditions }] },
        }[short]
        const patched = await server.request('PATCH', `${path}/status`, { status })
        expect(patched.status).toBe(200)
        const { stdout } = await run(partPath('kubectl'), [
          `--kubeconfig=${server.kubeconfig}`,
          'get',
          short,
        ])
        const [head, row] = stdout
          .trim()
          .split('\n')
          .map((line) => line.split(/\s+/))
        expect(head).toEqual(columns)
        const values: Readonly<Record<string, string>> = {
          NAME: 'shown',
          ACCEPTED: 'True',
          ATTACHED: 'False',
          REASON: 'Accepted',
        }
        expect(row?.slice(0, -1)).toEqual(columns.slice(0, -1).map((column) => values[column]))
        await server.request('DELETE', path)
      },
    )

    describe.each(
      [
        ...groupCases,
        ...credentialCases,
        ...boundCases,
        ...refusalCases,
        budgetCases,
        requiredCases,
      ].map((group) => [titleOf(group), group] as const),
    )('%s', (_, { cases }) => {
      it.each(byTitle(cases))('%s, as offline validation does', async (_, example) => {
        const { status, body } = await dryRun(server, example)
        const offline = problemsOf(objectOf(example))
        if (example.refusedAt === undefined) {
          expect(causesOf(body)).toEqual([])
          expect(status).toBe(201)
          expect(offline).toEqual([])
          return
        }
        expect(status).toBe(422)
        const causes = causesOf(body)
        expect([...new Set(causes.map(({ field }) => field))]).toEqual([example.refusedAt])
        expect(offline.map(({ path }) => path)).toEqual([example.refusedAt])
        if (example.message !== undefined) {
          expect(causes[0]?.message).toContain(example.message)
          expect(offline[0]?.message).toBe(example.message)
        }
      })
    })
  },
)

/**
 * The causes that the server reports. If a field is invalid, the server skips the rules that read it
 * and adds a cause without a field, which is left out here.
 */
function causesOf(body: {
  details?: { causes?: { field: string; message: string }[] }
}): { field: string; message: string }[] {
  return (body.details?.causes ?? []).filter(({ field }) => field !== '<nil>')
}

/** Asks the server about an object without storing it. */
function dryRun(server: ApiServer, example: SchemaCase) {
  const path = `${collection(example.kind)}?dryRun=All&fieldValidation=Strict`
  return server.request('POST', path, objectOf(example))
}
