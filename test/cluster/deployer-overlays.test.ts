/** What `sluice controller` deploys, in a real API server. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { applyOverlay } from '../../src/control/desired/deployment/overlay.ts'
import type { RenderedObject } from '../../src/control/desired/deployment/plan.ts'
import { gateway } from '../support/cluster.ts'
import {
  type DeployedKind,
  deployedPlaces,
  parameters,
  withParameters,
} from '../support/deployed.ts'
import { describeWithParts } from '../support/parts.ts'
import { deployerParts, useDeployer } from './deployer-rig.ts'
import { overlayCases } from './overlay-cases.ts'

const targets = {
  deployment: 'Deployment',
  daemonSet: 'DaemonSet',
  service: 'Service',
  serviceAccount: 'ServiceAccount',
  podDisruptionBudget: 'PodDisruptionBudget',
  horizontalPodAutoscaler: 'HorizontalPodAutoscaler',
} as const

/** The Gateway whose object an overlay patches. */
const gatewayOf = (target: string) => (target === 'daemonSet' ? 'nodes' : 'overlaid')

describeWithParts(deployerParts, 'deployed proxies', () => {
  const { cluster, deployed } = useDeployer()

  it('are accepted by the API server as sluice render prints them', async () => {
    const folder = join(import.meta.dirname, '..', 'render')
    const files = globSync('*/out.yaml', { cwd: folder }).sort()
    expect(files.length).toBeGreaterThan(3)
    for (const name of ['shop', 'platform']) {
      await cluster.server.request('POST', '/api/v1/namespaces', { metadata: { name } })
    }
    for (const file of files) {
      const text = readFileSync(join(folder, file), 'utf8')
      for (const document of parseAllDocuments(text, { version: '1.1' })) {
        const object = document.toJS() as RenderedObject
        const { kind, metadata } = object
        const place = deployedPlaces[kind as DeployedKind].replace(
          '/default/',
          `/${metadata.namespace}/`,
        )
        const path = `${place}/${metadata.name}?dryRun=All&fieldManager=test`
        const type = 'application/apply-patch+yaml'
        const { status, body } = await cluster.server.request('PATCH', path, object, type)
        expect(status, `${file}: ${kind} ${metadata.name}: ${body.message}`).toBe(201)
      }
    }
  })

  describe('overlays merge as the API server merges them', () => {
    let base: Record<string, RenderedObject>

    beforeAll(async () => {
      const spread = { topologyKey: 'zone', maxSkew: 1, whenUnsatisfiable: 'ScheduleAnyway' }
      const pod = {
        nodeSelector: { a: 'b' },
        topologySpreadConstraints: [spread],
        containers: [{ name: 'sidecar', image: 'sidecar:1' }],
      }
      await cluster.apply(
        parameters('overlaid', {
          resources: { requests: { cpu: '1' }, limits: { memory: '1Gi' } },
          service: {
            spec: { externalTrafficPolicy: 'Local', ports: [{ port: 443, name: 'tls' }] },
          },
          serviceAccount: { spec: { secrets: [{ name: 'a' }, { name: 'b', namespace: 'x' }] } },
          podDisruptionBudget: {},
          horizontalPodAutoscaler: {
            spec: { behavior: { scaleUp: { stabilizationWindowSeconds: 5 } } },
          },
          deployment: { spec: { revisionHistoryLimit: 5, template: { spec: pod } } },
        }),
      )
      await cluster.apply(gateway('overlaid', 'default', withParameters('overlaid')))
      await cluster.apply(
        parameters('nodes', {
          workload: { kind: 'DaemonSet' },
          daemonSet: { spec: { template: { spec: pod } } },
        }),
      )
      await cluster.apply(gateway('nodes', 'default', withParameters('nodes')))
      const live = Object.entries(targets).map(async ([target, kind]) => [
        target,
        await deployed.until(kind, gatewayOf(target)),
      ])
      base = Object.fromEntries(await Promise.all(live))
    })

    it.each(overlayCases)('$rule: $target $spec', async ({ target, spec }) => {
      const live = base[target]
      if (live === undefined) throw new Error(`no ${target}`)
      const path = `${deployedPlaces[targets[target]]}/${gatewayOf(target)}?dryRun=All`
      const patch = target === 'serviceAccount' ? spec : { spec }
      const type = 'application/strategic-merge-patch+json'
      const theirs = await cluster.server.request('PATCH', path, patch, type)
      const ours = applyOverlay(live, target, { from: 'case', spec })
      const put = await cluster.server.request('PUT', path, ours)
      expect([theirs.status, put.status], put.body.message).toEqual([200, 200])
      const fields = ({ metadata: _, status: __, ...rest }: Record<string, unknown>) => rest
      expect(fields(put.body)).toEqual(fields(theirs.body))
    })
  })
})
