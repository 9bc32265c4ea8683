import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { Authority, type Certificate } from '../support/certificates.ts'
import { controllerRules, gateway, route, service, TestCluster } from '../support/cluster.ts'
import { ClusterRig, type ProxyProcess, stablePort } from '../support/cluster-rig.ts'
import { ControllerProcess } from '../support/controller.ts'
import { describeWithParts } from '../support/parts.ts'
import { shownCertificate } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'

const parts = [...apiServerParts, 'gateway-api-crds'] as const

describeWithParts(parts, 'a controller and a proxy whose credentials are renewed', () => {
  const authority = new Authority()
  const rig = new ClusterRig({})
  let cluster: TestCluster
  let controller: ControllerProcess
  let proxy: ProxyProcess
  let xdsPort = 0
  let revisions = 0

  const path = (name: string) => join(rig.folder, name)

  /** Writes a mounted Secret as the kubelet does: a new folder, and one link that is replaced. */
  const mount = (folder: string, files: Readonly<Record<string, string>>) => {
    const root = path(folder)
    const isFirst = revisions === 0
    const data = join(root, `..${++revisions}`)
    mkdirSync(data, { recursive: true })
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(data, name), text)
      if (isFirst) symlinkSync(join('..data', name), join(root, name))
    }
    symlinkSync(data, join(root, '..fresh'))
    renameSync(join(root, '..fresh'), join(root, '..data'))
  }
  const certificate = ({ certificate, key }: Certificate) => ({
    'tls.crt': certificate,
    'tls.key': key,
    'ca.crt': authority.certificate,
  })

  /** A token that is valid for as long as a Secret is there, which has its name. */
  const issue = async (account: string, bound: string, audiences?: readonly string[]) => {
    const base = '/api/v1/namespaces/default'
    const { body: secret } = await cluster.server.request('POST', `${base}/secrets`, {
      metadata: { name: bound },
    })
    const { uid } = secret.metadata
    const boundObjectRef = { kind: 'Secret', apiVersion: 'v1', name: bound, uid }
    const spec = { boundObjectRef, ...(audiences && { audiences }) }
    const accounts = `${base}/serviceaccounts/${account}`
    const { body } = await cluster.server.request('POST', `${accounts}/token`, { spec })
    return body.status.token as string
  }
  const revoke = (bound: string) => cluster.delete('Secret', bound)
  /** Does the API server take a token? */
  const isTaken = async (token: string) => {
    const review = { spec: { token, audiences: ['sluice'] } }
    const where = '/apis/authentication.k8s.io/v1/tokenreviews'
    const own = await cluster.server.request('POST', where, { ...review, spec: { token } })
    const theirs = await cluster.server.request('POST', where, review)
    return [own, theirs].some(({ body }) => body.status.authenticated === true)
  }
  const shown = () =>
    shownCertificate(
      xdsPort,
      { ca: authority.certificate, servername: '' },
      { ALPNProtocols: ['h2'], checkServerIdentity: () => undefined },
    )

  beforeAll(async () => {
    cluster = await new TestCluster(await startApiServer()).install()
    await cluster.account('controller', controllerRules())
    await cluster.applyAll([gateway('edge', 'default'), service('shop')])
    const accounts = '/api/v1/namespaces/default/serviceaccounts'
    await cluster.server.request('POST', accounts, { metadata: { name: 'edge' } })
    writeFileSync(path('controller-token'), await issue('controller', 'controller-1'))
    writeFileSync(path('proxy-token'), await issue('edge', 'proxy-1', ['sluice']))
    const config = JSON.parse(readFileSync(cluster.server.kubeconfig, 'utf8'))
    // What a pod has: a file that is read by the same part of the library.
    const provider = { name: 'tokenFile', config: { tokenFile: path('controller-token') } }
    config.users[0].user = { 'auth-provider': provider }
    writeFileSync(path('kubeconfig'), JSON.stringify(config))
    mount('tls', certificate(authority.issue(['127.0.0.1'])))
    xdsPort = await stablePort()
    controller = await new ControllerProcess({
      kubeconfig: path('kubeconfig'),
      env: { SLUICE_XDS_TLS_ENABLED: 'true', SLUICE_XDS_TLS_DIR: path('tls') },
      args: ['--xds-address', `127.0.0.1:${xdsPort}`],
    }).start()
    writeFileSync(path('ca.crt'), authority.certificate)
    proxy = await rig
      .proxy({
        name: 'edge-1',
        addresses: [`127.0.0.1:${xdsPort}`],
        args: ['--xds-ca-file', path('ca.crt'), '--xds-token-file', path('proxy-token')],
      })
      .start()
  }, 150_000)
  afterAll(async () => {
    await controller?.dispose()
    await rig.dispose()
    await cluster?.server.stop()
    authority.dispose()
  })

  it('serves the renewed certificate of a mounted Secret, and drops no stream', async () => {
    const renewed = authority.issue(['127.0.0.1'])
    mount('tls', certificate(renewed))
    await waitFor('the renewed certificate', async () => (await shown()) === renewed.fingerprint)
    mount('tls', { ...certificate(renewed), 'tls.key': authority.issue(['127.0.0.1']).key })
    await controller.said(/the new certificate of the xDS server is not used/)
    expect(await shown()).toBe(renewed.fingerprint)
    expect(await proxy.metric('controller_connections_total')).toBe(1)
    mount('tls', certificate(renewed))
  })

  it('uses the renewed token of its file once the old one is revoked', async () => {
    const old = readFileSync(path('controller-token'), 'utf8')
    writeFileSync(path('controller-token'), await issue('controller', 'controller-2'))
    await revoke('controller-1')
    await waitFor('the end of the old token', async () => !(await isTaken(old)))
    await cluster.apply(route('after', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'after', 'Accepted=True')
    await cluster.apply(route('after', 'edge', 'absent'))
    await cluster.condition('HTTPRoute', 'after', 'ResolvedRefs=False/BackendNotFound')
  })

  it('keeps the stream of a proxy whose token is renewed, and requires the new token for the next stream', async () => {
    const old = readFileSync(path('proxy-token'), 'utf8')
    writeFileSync(path('proxy-token'), await issue('edge', 'proxy-2', ['sluice']))
    await revoke('proxy-1')
    await waitFor('the end of the old token', async () => !(await isTaken(old)))
    expect(await proxy.metric('controller_connections_total')).toBe(1)
    await controller.stop()
    await controller.start()
    await waitFor('a second stream', async () => {
      return (await proxy.metric('controller_connections_total')) === 2
    })
    expect(controller.stderr).not.toContain('was refused')
  })
})
