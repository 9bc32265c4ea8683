/** Misplaced policies are refused when they are applied, by a policy of the chart of the CRDs. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { crds } from '../../src/control/api/crds.ts'
import { type ApiServer, apiServerParts, startApiServer } from '../support/api-server.ts'
import { type Crd, installCrds } from '../support/crds.ts'
import { templateText } from '../support/helm.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'

const root = join(import.meta.dirname, '..', '..')
const collection = '/apis/sluice.dev/v1alpha1/namespaces/default/gatewaypolicies?dryRun=All'
const gatewayGroup = 'gateway.networking.k8s.io'

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: unknown
}

const objectsIn = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((object) => object !== null)

const target = (kind: string, group = gatewayGroup, more = {}) => ({
  group,
  kind,
  name: 'a',
  ...more,
})

describeWithParts(
  [...apiServerParts, 'helm'],
  'the admission policy of the chart sluice-crds',
  () => {
    let server: ApiServer
    const apply = async (spec: unknown, name = 'policy') => {
      const metadata = { name, namespace: 'default' }
      const object = { apiVersion: 'sluice.dev/v1alpha1', kind: 'GatewayPolicy', metadata, spec }
      const { status, body } = await server.request('POST', collection, object)
      return { status, message: `${body.message ?? ''}` }
    }

    beforeAll(async () => {
      server = await startApiServer()
      await installCrds(server, crds() as readonly Crd[])
      const plurals: Readonly<Record<string, string>> = {
        ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
        ValidatingAdmissionPolicyBinding: 'validatingadmissionpolicybindings',
      }
      for (const object of objectsIn(await templateText('sluice-crds', {}))) {
        const plural = plurals[object.kind]
        if (plural === undefined) continue
        const path = `/apis/admissionregistration.k8s.io/v1/${plural}`
        const { status, body } = await server.request('POST', path, object)
        expect({ status, message: body.message }).toEqual({ status: 201, message: undefined })
      }
      const misplaced = {
        targetRefs: [target('HTTPRoute')],
        frontend: { http: { maxBufferSize: 65536 } },
      }
      await waitFor(
        'the policy to be in force',
        async () => (await apply(misplaced)).status === 422,
      )
    }, 150_000)
    afterAll(() => server?.stop())

    it.each([
      {
        spec: { targetRefs: [target('HTTPRoute')], frontend: { http: { maxBufferSize: 65536 } } },
        message: 'spec.frontend may target Gateway only',
      },
      {
        spec: {
          targetRefs: [target('Gateway', gatewayGroup, { sectionName: 'http' })],
          frontend: { http: { maxBufferSize: 65536 } },
        },
        message:
          'spec.frontend may target only a whole Gateway or a port of it, without sectionName',
      },
      {
        spec: { targetRefs: [target('Service', '')], traffic: { csrf: {} } },
        message: 'spec.traffic may target Gateway, ListenerSet, HTTPRoute, GRPCRoute only',
      },
      {
        spec: {
          targetRefs: [target('Gateway'), target('HTTPRoute')],
          traffic: { phase: 'PreRouting', cors: { allowOrigins: ['*'] } },
        },
        message: 'phase PreRouting needs one of Gateway, ListenerSet as its target',
      },
      {
        spec: { targetRefs: [target('Gateway')], traffic: { phase: 'PreRouting', csrf: {} } },
        message: 'spec.traffic.csrf does not run in phase PreRouting',
      },
    ])('refuses $message', async ({ spec, message }) => {
      const refused = await apply(spec)
      expect(refused.status).toBe(422)
      expect(refused.message).toContain(`'placement.gatewaypolicies.sluice.dev'`)
      expect(refused.message).toContain(message)
    })

    it('accepts every policy of the examples', async () => {
      const files = globSync('examples/**/*.yaml', { cwd: root, exclude: ['**/node_modules'] })
      const policies = files
        .flatMap((file) => objectsIn(readFileSync(join(root, file), 'utf8')))
        .filter(({ kind }) => kind === 'GatewayPolicy')
      expect(policies.length).toBeGreaterThan(15)
      for (const { metadata, spec } of policies) {
        expect(await apply(spec, metadata.name)).toEqual({ status: 201, message: '' })
      }
    })
  },
)
