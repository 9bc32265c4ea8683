import { existsSync, readFileSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SluiceEvent } from '../../events/index.ts'
import { openEmbeddedLog } from '../../src/control/log/index.ts'
import { routeApplied } from '../contract/events.ts'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { Authority } from '../support/certificates.ts'
import { gateway, route, service, TestCluster, type TestObject } from '../support/cluster.ts'
import { ControllerProcess } from '../support/controller.ts'
import { sluice } from '../support/gateway.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import { BareClient, edgeNode } from '../support/xds-client.ts'

interface RouteStatus {
  readonly parents: readonly {
    readonly controllerName: string
    readonly parentRef: { readonly name: string }
    readonly conditions: readonly { readonly type: string; readonly lastTransitionTime: string }[]
  }[]
}

const other = 'example.com/other-controller'
const aTime = '2026-01-02T03:04:05Z'

describeWithParts([...apiServerParts, 'gateway-api-crds'], 'a controller in a cluster', () => {
  let cluster: TestCluster
  let controller: ControllerProcess

  const statusOf = async (name: string) =>
    (await cluster.status('HTTPRoute', name)) as unknown as RouteStatus
  const patchStatus = (kind: string, name: string, status: object) =>
    cluster.server.request('PATCH', `${cluster.path(kind, name)}/status`, { status })
  const events = async (): Promise<SluiceEvent[]> => {
    const { stdout } = await sluice('log', '--log-file', controller.logFile, '-o', 'json')
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => (JSON.parse(line) as { event: SluiceEvent }).event)
  }
  const about = async (kind: string, name: string) =>
    (await events()).filter(
      ({ type, data }) =>
        type.startsWith('dev.sluice.resource.') &&
        'kind' in data &&
        data.kind === kind &&
        data.name === name,
    )

  beforeAll(async () => {
    cluster = await new TestCluster(await startApiServer()).install()
    controller = await new ControllerProcess({ kubeconfig: cluster.server.kubeconfig }).start()
    await cluster.applyAll([gateway('edge'), service('shop')])
  }, 150_000)
  afterAll(async () => {
    await controller?.dispose()
    await cluster?.server.stop()
  })

  it('becomes ready once everything is listed', async () => {
    expect(await controller.get('health', '/readyz')).toMatchObject({ status: 200 })
    expect(await controller.get('health', '/healthz')).toMatchObject({ status: 200 })
    expect(await controller.metric('sluice_controller_ready')).toBe(1)
    expect(await controller.metric('sluice_watch_up', 'state="following"')).toBeGreaterThan(15)
  })

  it('creates the default GatewayClass, accepts it, and recreates it', async () => {
    await cluster.condition('GatewayClass', 'agentgateway', 'Accepted=True/Accepted')
    const { spec, status } = await cluster.get('GatewayClass', 'agentgateway')
    expect(spec.controllerName).toBe('sluice.dev/gateway-controller')
    expect(status.supportedFeatures.map(({ name }: { name: string }) => name)).toContain(
      'HTTPRoute',
    )
    await cluster.delete('GatewayClass', 'agentgateway')
    await cluster.condition('GatewayClass', 'agentgateway', 'Accepted=True/Accepted')
  })

  it('writes the statuses of a Gateway and a route, and follows their changes', async () => {
    await cluster.apply(route('shop', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'shop', 'Accepted=True/Accepted')
    await cluster.condition('HTTPRoute', 'shop', 'ResolvedRefs=True')
    await cluster.condition('Gateway', 'edge', 'Accepted=True/Accepted')
    await cluster.condition('Gateway', 'edge', 'Programmed=False/Pending')
    await cluster.apply(route('shop', 'edge', 'absent'))
    await cluster.condition('HTTPRoute', 'shop', 'ResolvedRefs=False/BackendNotFound')
    await cluster.apply(service('absent'))
    await cluster.condition('HTTPRoute', 'shop', 'ResolvedRefs=True')
    await cluster.delete('Service', 'absent')
    await cluster.condition('HTTPRoute', 'shop', 'ResolvedRefs=False/BackendNotFound')
    await cluster.apply(route('shop', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'shop', 'ResolvedRefs=True')
  })

  it('writes the status of a policy without a Gateway', async () => {
    await cluster.apply({
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'GatewayPolicy',
      metadata: { name: 'lost', namespace: 'default' },
      spec: {
        targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'nowhere' }],
        traffic: { timeouts: { request: '5s' } },
      },
    })
    await cluster.condition('GatewayPolicy', 'lost', 'Attached=False/Pending')
  })

  it('keeps the entries of other controllers, and writes nothing that is correct', async () => {
    await cluster.apply(route('shared', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'shared', 'Accepted=True')
    const foreign = {
      parentRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'theirs' },
      controllerName: other,
      conditions: [
        {
          type: 'Accepted',
          status: 'True',
          reason: 'Accepted',
          message: '',
          observedGeneration: 1,
          lastTransitionTime: aTime,
        },
      ],
    }
    const { parents } = await statusOf('shared')
    await patchStatus('HTTPRoute', 'shared', { parents: [...parents, foreign] })
    const seen = (await cluster.get('HTTPRoute', 'shared')).metadata.resourceVersion
    await cluster.apply(route('after', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'after', 'Accepted=True')
    expect((await cluster.get('HTTPRoute', 'shared')).metadata.resourceVersion).toBe(seen)

    await cluster.apply(route('shared', 'edge', 'absent'))
    await cluster.condition('HTTPRoute', 'shared', 'ResolvedRefs=False')
    const after = await statusOf('shared')
    expect(after.parents.find(({ controllerName }) => controllerName === other)).toEqual(foreign)
    const accepted = (list: RouteStatus['parents']) =>
      list
        .find(({ controllerName }) => controllerName !== other)
        ?.conditions.find(({ type }) => type === 'Accepted')?.lastTransitionTime
    expect(accepted(after.parents)).toBe(accepted(parents))
  })

  it('keeps conditions of other types, and repairs its own', async () => {
    const theirs = {
      type: 'example.com/Checked',
      status: 'True',
      reason: 'Fine',
      message: '',
      observedGeneration: 1,
      lastTransitionTime: aTime,
    }
    const { conditions } = (await cluster.status('Gateway', 'edge')) ?? {}
    await patchStatus('Gateway', 'edge', { conditions: [...(conditions ?? []), theirs] })
    await patchStatus('HTTPRoute', 'shop', { parents: [] })
    await cluster.condition('HTTPRoute', 'shop', 'Accepted=True')
    const kept = await cluster.status('Gateway', 'edge')
    expect(kept?.conditions?.find(({ type }) => type === theirs.type)).toEqual(theirs)
  })

  it('removes its entries if the parent no longer belongs to it', async () => {
    await cluster.apply(route('moves', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'moves', 'Accepted=True')
    await cluster.apply(route('moves', 'nowhere', 'shop'))
    await waitFor('no entry', async () => (await statusOf('moves')).parents.length === 0)
  })

  it('writes the statuses of backends and policies', async () => {
    const own = (kind: string, name: string, spec: object): TestObject => ({
      apiVersion: 'sluice.dev/v1alpha1',
      kind,
      metadata: { name, namespace: 'default' },
      spec,
    })
    await cluster.apply(own('GatewayBackend', 'fixed', { static: { host: 'a.example', port: 80 } }))
    await cluster.condition('GatewayBackend', 'fixed', 'Accepted=True/Accepted')
    const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'shop' }]
    await cluster.apply(
      own('GatewayPolicy', 'deny', { targetRefs, traffic: { directResponse: { status: 403 } } }),
    )
    await cluster.condition('GatewayPolicy', 'deny', 'Accepted=True/Valid')
    await cluster.condition('GatewayPolicy', 'deny', 'Attached=True/Attached')
    await cluster.delete('GatewayPolicy', 'deny')
  })

  it('counts ListenerSets that are attached', async () => {
    await cluster.apply(
      gateway('wide', 'default', { allowedListeners: { namespaces: { from: 'Same' } } }),
    )
    await cluster.apply({
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'ListenerSet',
      metadata: { name: 'more', namespace: 'default' },
      spec: {
        parentRef: { name: 'wide' },
        listeners: [{ name: 'extra', port: 8081, protocol: 'HTTP' }],
      },
    })
    await cluster.condition('ListenerSet', 'more', 'Accepted=True/Accepted')
    await waitFor('an attached set', async () => {
      const status = await cluster.status('Gateway', 'wide')
      return status?.attachedListenerSets === 1
    })
  })

  it('fetches a referenced Secret, and logs only metadata about it', async () => {
    const authority = new Authority()
    const { certificate, key: privateKey } = authority.issue(['tls.example.com'])
    authority.dispose()
    const encode = (text: string) => Buffer.from(text).toString('base64')
    const secret = (name: string, data: Record<string, string>): TestObject => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'default' },
      type: 'kubernetes.io/tls',
      data,
    })
    const pair = { 'tls.crt': encode(certificate), 'tls.key': encode(privateKey) }
    await cluster.apply(secret('used-cert', pair))
    await cluster.apply(secret('other-cert', pair))
    const tls = { certificateRefs: [{ name: 'used-cert' }] }
    await cluster.apply(
      gateway('secure', 'default', {
        listeners: [{ name: 'tls', port: 8443, protocol: 'HTTPS', tls }],
      }),
    )
    await cluster.condition('Gateway', 'secure', 'ResolvedRefs=True')
    const [applied, ...more] = await about('Secret', 'used-cert')
    expect(more).toEqual([])
    expect(applied?.data).toMatchObject({ object: { facts: expect.anything() } })
    expect(await about('Secret', 'other-cert')).toEqual([])
    const written = readFileSync(controller.logFile).toString('latin1')
    expect(written.includes(pair['tls.key'].slice(40, 120))).toBe(false)
    expect(written.includes(privateKey.slice(60, 100))).toBe(false)

    await cluster.delete('Secret', 'used-cert')
    await cluster.condition('Gateway', 'secure', 'ResolvedRefs=False/InvalidCertificateRef')
    await cluster.apply(secret('used-cert', pair))
    await cluster.condition('Gateway', 'secure', 'ResolvedRefs=True')
  })

  it('does not log unreferenced objects until something refers to them', async () => {
    await cluster.apply(service('lonely'))
    await cluster.apply(route('later', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'later', 'Accepted=True')
    expect(await about('Service', 'lonely')).toEqual([])
    await cluster.apply(route('later', 'edge', 'lonely'))
    await cluster.condition('HTTPRoute', 'later', 'ResolvedRefs=True')
    expect(await about('Service', 'lonely')).toHaveLength(1)
  })

  it('appends nothing for changes of statuses and bookkeeping', async () => {
    await cluster.apply(route('quiet', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'quiet', 'Accepted=True')
    expect(await about('HTTPRoute', 'quiet')).toHaveLength(1)
  })

  it('detects changes after a restart, and rewrites nothing that is correct', async () => {
    await cluster.applyAll([route('stays', 'edge', 'shop'), route('goes', 'edge', 'shop')])
    await cluster.condition('HTTPRoute', 'stays', 'Accepted=True')
    await cluster.condition('HTTPRoute', 'goes', 'Accepted=True')
    await controller.stop()
    await cluster.delete('HTTPRoute', 'goes')
    const before = await cluster.get('HTTPRoute', 'stays')
    await controller.start()
    await cluster.apply(route('fresh', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'fresh', 'Accepted=True')
    const told = (await about('HTTPRoute', 'goes')).at(-1)
    expect(told).toMatchObject({
      type: 'dev.sluice.resource.deleted.v1',
      data: { cause: 'relist' },
    })
    expect(await about('HTTPRoute', 'stays')).toHaveLength(1)

    // The log is lost: history, and nothing else.
    await controller.kill()
    rmSync(controller.logFile)
    await controller.start()
    await cluster.apply(route('fresher', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'fresher', 'Accepted=True')
    const after = await cluster.get('HTTPRoute', 'stays')
    expect(after.metadata.resourceVersion).toBe(before.metadata.resourceVersion)
  })

  it('emits a Warning event on a Gateway for resources that its proxies reject', async () => {
    const node = { ...edgeNode, gateway: { namespace: 'default', name: 'edge' } }
    const client = new BareClient({ address: await controller.xdsAddress() }).hello(node)
    const { nonce } = await client.next()
    const key = 'listener/Gateway/default/edge/http'
    const rejections = [{ key, code: 'port_in_use', message: 'taken' }]
    const { metadata } = await cluster.get('Gateway', 'edge')
    const refuse = (count: number) => {
      client.say({ nonce, rejected: { rejections, omitted: 0, message: 'taken' } })
      return waitFor('a warning', async () =>
        (await cluster.events(metadata.uid)).find(
          ({ reason, series }) => reason === 'GatewayNack' && (series?.count ?? 1) === count,
        ),
      )
    }
    expect(await refuse(1)).toMatchObject({
      type: 'Warning',
      note: `proxy edge-1 refuses ${key}: taken`,
      regarding: { kind: 'Gateway', name: 'edge' },
    })
    client.say({ nonce })
    await refuse(2)
    client.close()
  })

  it('exits if one of its addresses is in use, and names it', async () => {
    const taken = await controller.xdsAddress()
    const { kubeconfig } = cluster.server
    const started = (...addresses: string[]) => {
      const log = ['--log-file', `${controller.logFile}.other`]
      return sluice('controller', '--kubeconfig', kubeconfig, ...log, ...addresses)
    }
    expect(await started('--xds-address', taken)).toMatchObject({
      code: 2,
      stderr: `sluice: port is already in use: xds address ${taken}\n`,
    })
    // An unused address: reserved for documentation (RFC 5737).
    expect(
      await started('--xds-address', '127.0.0.1:0', '--health-address', '192.0.2.1:1'),
    ).toMatchObject({
      code: 2,
      stderr:
        'sluice: address cannot be listened on: health address 192.0.2.1:1: this machine does not have that address\n',
    })
  })

  it.runIf(existsSync('/proc/self'))('exits if it cannot create its log', async () => {
    const file = '/proc/nowhere/events.db'
    const addresses = ['xds', 'health', 'metrics'].flatMap((one) => [
      `--${one}-address`,
      '127.0.0.1:0',
    ])
    const from = ['--kubeconfig', cluster.server.kubeconfig, '--log-file', file]
    const { code, stderr } = await sluice('controller', ...from, ...addresses)
    expect([code, stderr.split('\n').at(-2)]).toEqual([
      2,
      `sluice: ${file} cannot be written: ENOENT: no such file or directory, mkdir '/proc/nowhere'`,
    ])
  })

  it('is not ready on a log of a newer version, and stops on SIGTERM', async () => {
    const logFile = `${controller.logFile}.newer`
    const { log } = openEmbeddedLog(logFile)
    await log.append([{ ...routeApplied('later'), type: 'dev.sluice.resource.applied.v9' }])
    await log.close()
    const { kubeconfig } = cluster.server
    const older = await new ControllerProcess({ kubeconfig, logFile }).launch()
    const reason = `position 1 of the log: event type dev.sluice.resource.applied.v9 is unknown`
    await older.said(
      new RegExp(`^error: ${reason}; .*\\. Serving the last configuration; upgrade`, 'm'),
    )
    expect((await older.get('health', '/readyz')).text).toContain(`\nlog: ${reason}`)
    expect(await older.stop()).toBe(0)
    await older.dispose()
  })

  it('replays its log to the same digests', async () => {
    const replayed = await sluice('replay', '--log-file', controller.logFile)
    expect(replayed.stdout).toMatch(/of which 0 differ/)
    expect(replayed.code).toBe(0)
  })
})
