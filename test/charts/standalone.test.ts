/**
 * The chart `sluice-standalone`: what its container would start is started here, with the rendered arguments, variables
 * and manifests. There is no kubelet, so the test mounts the files.
 */
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { freePort, launcher } from '../support/gateway.ts'
import { only, type Rendered, template } from '../support/helm.ts'
import { send } from '../support/http-client.ts'
import { describeWithParts } from '../support/parts.ts'
import { type Program, startProgram } from '../support/program.ts'
import { waitFor } from '../support/wait-for.ts'

const render = (values: object = {}, release = 'gateway') =>
  template('sluice-standalone', values, { release, namespace: 'apps' })
const podOf = (objects: readonly Rendered[]) => only(objects, 'Deployment').spec.template.spec
const refusal = (values: object) =>
  render(values).then(
    () => 'rendered',
    (error: Error) => error.message,
  )

const answering = (port: number, body: string) => [
  {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    metadata: { name: 'edge' },
    spec: {
      gatewayClassName: 'agentgateway',
      listeners: [{ name: 'http', port, protocol: 'HTTP' }],
    },
  },
  {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name: 'hello' },
    spec: {
      parentRefs: [{ name: 'edge' }],
      rules: [{ matches: [{ path: { type: 'PathPrefix', value: '/' } }] }],
    },
  },
  {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'GatewayPolicy',
    metadata: { name: 'hello' },
    spec: {
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'hello' }],
      traffic: { directResponse: { status: 200, body } },
    },
  },
]

describeWithParts(['helm'], 'the standalone chart', () => {
  let folder: string
  let gateway: Program | undefined
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-standalone-'))
  })
  afterEach(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Puts keys where a volume has them, as a kubelet does: all files change at once. */
  const mount = (volume: string, data: Readonly<Record<string, string>>, version: string) => {
    const at = join(folder, 'etc/sluice', volume)
    mkdirSync(join(at, `..${version}`), { recursive: true })
    for (const [key, text] of Object.entries(data))
      writeFileSync(join(at, `..${version}`, key), text)
    symlinkSync(`..${version}`, join(at, '..data_tmp'))
    renameSync(join(at, '..data_tmp'), join(at, '..data'))
    for (const key of Object.keys(data)) {
      rmSync(join(at, key), { force: true })
      symlinkSync(join('..data', key), join(at, key))
    }
  }

  it('runs a gateway that serves the manifests of its values, and changed ones without a restart', async () => {
    const port = await freePort()
    const rendered = await render({ manifests: answering(port, 'first') })
    const [container] = podOf(rendered).containers
    const { data } = only(rendered, 'ConfigMap')
    mount('manifests', data, 'v1')
    mkdirSync(join(folder, 'var/lib/sluice'), { recursive: true })
    const args = (container.args as string[]).map((one) =>
      one.replace(/=(\/(etc|var)\/)/, `=${folder}$1`),
    )
    const variables = (container.env as { name: string; value: string }[]).map(
      ({ name, value }) => [name, value] as const,
    )
    gateway = startProgram(launcher, args, join(folder, 'log'), {
      ...process.env,
      ...Object.fromEntries(variables),
      // What differs from a pod: several tests share this machine's ports.
      SLUICE_ADMIN_ADDRESS: 'off',
      SLUICE_STATS_ADDRESS: '127.0.0.1:0',
      SLUICE_READINESS_ADDRESS: '127.0.0.1:0',
      SLUICE_BIND_ADDRESS: '127.0.0.1',
      CONNECTION_MIN_TERMINATION_DEADLINE: '0s',
    })
    const answers = (body: string) =>
      waitFor(`the answer ${body}`, async () => {
        if (gateway?.hasExited()) throw new Error(gateway.lastLines())
        const response = await send(port).catch(() => undefined)
        return response?.body === body
      })
    await answers('first')
    const next = await render({ manifests: answering(port, 'second') })
    mount('manifests', only(next, 'ConfigMap').data, 'v2')
    await answers('second')
  })

  it('mounts every ConfigMap and Secret with manifests, and reads each', async () => {
    const pod = podOf(await render({ existingConfigMaps: ['routes'], existingSecrets: ['keys'] }))
    const [{ args, volumeMounts }] = pod.containers
    expect(args).toEqual([
      'run',
      '--file=/etc/sluice/config-map-0',
      '--file=/etc/sluice/secret-0',
      '--log-file=/var/lib/sluice/events.db',
    ])
    expect(pod.volumes.slice(0, 2)).toEqual([
      { name: 'config-map-0', configMap: { name: 'routes' } },
      { name: 'secret-0', secret: { secretName: 'keys' } },
    ])
    expect(volumeMounts.slice(0, 2)).toEqual([
      { name: 'config-map-0', mountPath: '/etc/sluice/config-map-0', readOnly: true },
      { name: 'secret-0', mountPath: '/etc/sluice/secret-0', readOnly: true },
    ])
  })

  it('installs without values, with no permissions in the cluster', async () => {
    const rendered = await render()
    expect(rendered.map(({ kind }) => kind).sort()).toEqual([
      'Deployment',
      'Service',
      'ServiceAccount',
    ])
    const pod = podOf(rendered)
    expect(pod.automountServiceAccountToken).toBe(false)
    expect(pod.containers[0].securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ['ALL'] },
    })
  })

  it('passes settings as variables, which replace its own', async () => {
    const pod = podOf(
      await render({
        extraEnv: {
          SLUICE_WORKERS: 2,
          RUST_LOG: 'debug',
          KEY: { valueFrom: { secretKeyRef: { name: 'k', key: 'key' } } },
        },
      }),
    )
    const { env } = pod.containers[0]
    expect(env).toContainEqual({ name: 'SLUICE_WORKERS', value: '2' })
    expect(env.filter(({ name }: { name: string }) => name === 'RUST_LOG')).toEqual([
      { name: 'RUST_LOG', value: 'debug' },
    ])
    expect(env).toContainEqual({
      name: 'KEY',
      valueFrom: { secretKeyRef: { name: 'k', key: 'key' } },
    })
  })

  it('scales without a fixed number of replicas', async () => {
    const rendered = await render({
      autoscaling: { minReplicas: 2, maxReplicas: 9 },
      podDisruptionBudget: { minAvailable: 1 },
    })
    expect(only(rendered, 'Deployment').spec).not.toHaveProperty('replicas')
    expect(only(rendered, 'HorizontalPodAutoscaler').spec).toEqual({
      scaleTargetRef: {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        name: 'gateway-sluice-standalone',
      },
      minReplicas: 2,
      maxReplicas: 9,
    })
    expect(only(rendered, 'PodDisruptionBudget').spec.selector).toEqual(
      only(rendered, 'Deployment').spec.selector,
    )
  })

  it.each([
    ['an unknown value', { manifest: [] }, 'manifest'],
    ['a manifest without a kind', { manifests: [{ apiVersion: 'v1', metadata: {} }] }, 'kind'],
    [
      'a log of several replicas in one file',
      { replicaCount: 2, persistence: { enabled: true } },
      'single replica',
    ],
    [
      'two ports of one name',
      {
        service: {
          ports: [
            { name: 'a', port: 1 },
            { name: 'a', port: 2 },
          ],
        },
      },
      'two ports are named a',
    ],
  ])('refuses %s', async (_, values, message) => {
    expect(await refusal(values)).toContain(message)
  })
})
