import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { Authority, type Certificate } from '../support/certificates.ts'
import { ClusterRig, stablePort } from '../support/cluster-rig.ts'
import { send } from '../support/http-client.ts'
import { gateway, httpRoute, manifest } from '../support/manifests.ts'
import { shownCertificate } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'

// Several processes start in each of these.
vi.setConfig({ testTimeout: 90_000 })

const authority = new Authority()
afterAll(() => authority.dispose())

let rig: ClusterRig
afterEach(() => rig.dispose())

const answering = manifest(
  httpRoute('app', {
    rules: [{ filters: [{ type: 'RequestRedirect', requestRedirect: { statusCode: 302 } }] }],
  }),
)

function file(name: string, text: string): string {
  const path = join(rig.folder, name)
  writeFileSync(path, text)
  return path
}

/** A control plane that speaks TLS and asks for a token, and what its proxies need for it. */
async function startSecure(port: number) {
  rig = new ClusterRig({ 'base.yaml': manifest(gateway(port)), 'route.yaml': answering })
  const { certificate, key } = authority.issue(['127.0.0.1'])
  const tokenFile = file('expected-token', 'right\n')
  const plane = await rig.controlPlane({
    tokenFile,
    certificateFile: file('tls.crt', certificate),
    keyFile: file('tls.key', key),
  })
  const caFile = file('ca.crt', authority.certificate)
  return { plane, caFile, token: file('token', 'right\n') }
}

const redirected = (port: number) =>
  waitFor('an answer', async () => (await send(port).catch(() => undefined))?.status === 302)

describe('the connection to a controller', () => {
  it('requires TLS and a token', async () => {
    const port = await stablePort()
    const { plane, caFile, token } = await startSecure(port)
    const addresses = [plane.address]
    const wrong = file('wrong', 'wrong')
    const start = (name: string, ...args: string[]) =>
      rig.proxy({ name, addresses, isKept: false, args }).launch()
    const stranger = new Authority()
    const other = file('other.crt', stranger.certificate)
    const plain = start('plain', '--xds-token-file', token)
    const tokenless = start('tokenless', '--xds-ca-file', caFile)
    const liar = start('liar', '--xds-ca-file', caFile, '--xds-token-file', wrong)
    const wary = start('wary', '--xds-ca-file', other, '--xds-token-file', token)
    await plain.printed(/cannot be used: UNAVAILABLE/)
    await tokenless.printed(/UNAUTHENTICATED: no bearer token was sent/)
    await liar.printed(/UNAUTHENTICATED: the bearer token is not valid/)
    await plane.printed(/notice: a proxy at .* was refused/)
    await wary.printed(/cannot be used: UNAVAILABLE: .*(certificate|issuer)/)
    stranger.dispose()
    expect(await plane.metric('xds_proxies')).toBe(0)
    const good = start('good', '--xds-ca-file', caFile, '--xds-token-file', token)
    await good.printed(/^ready$/m)
    await redirected(port)
    // A token that is put right is read at the next try.
    writeFileSync(wrong, 'right')
    await liar.printed(/connected to the controller/)
  })

  it('survives a certificate renewal, and new connections get the new certificate', async () => {
    const port = await stablePort()
    const { plane, caFile, token } = await startSecure(port)
    const args = ['--xds-ca-file', caFile, '--xds-token-file', token]
    const addresses = [plane.address]
    const proxy = await rig.proxy({ name: 'edge-1', addresses, args }).start()
    const xdsPort = Number(plane.address.split(':')[1])
    const shown = () =>
      shownCertificate(
        xdsPort,
        { ca: authority.certificate, servername: '' },
        {
          ALPNProtocols: ['h2'],
          checkServerIdentity: () => undefined,
        },
      )
    const renewed = authority.issue(['127.0.0.1'])
    file('tls.crt', renewed.certificate)
    file('tls.key', renewed.key)
    await waitFor('the new certificate', async () => (await shown()) === renewed.fingerprint)
    expect(await proxy.metric('controller_connections_total')).toBe(1)
    await proxy.kill()
    await proxy.start()
    await proxy.printed(/connected to the controller/)
    // One whose key does not belong to it is not used.
    file('tls.key', authority.issue(['127.0.0.1']).key)
    await plane.printed(/notice: the new certificate of the xDS server is not used/)
    expect(await shown()).toBe(renewed.fingerprint)
  })
})

describe('values of Secrets', () => {
  const secret = ({ certificate, key }: Certificate) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'shop' },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': certificate, 'tls.key': key },
  })

  it('reach only the proxy of the Gateway that needs them, and survive a restart without a controller', async () => {
    const [port, otherPort] = [await stablePort(), await stablePort()]
    const [first, second] = [authority.issue(['shop.test']), authority.issue(['shop.test'])]
    const https = {
      name: 'https',
      port,
      protocol: 'HTTPS',
      tls: { certificateRefs: [{ name: 'shop' }] },
    }
    rig = new ClusterRig({
      'base.yaml': manifest(gateway(port, { listeners: [https] }), gateway(otherPort, {}, 'other')),
      'secret.yaml': manifest(secret(first)),
      'route.yaml': answering,
    })
    const plane = await rig.controlPlane()
    const addresses = [plane.address]
    const proxy = await rig.proxy({ name: 'edge-1', addresses }).start()
    const other = await rig.proxy({ name: 'other-1', addresses, gateway: 'default/other' }).start()
    const client = { ca: authority.certificate, servername: 'shop.test' }
    expect(await shownCertificate(port, client)).toBe(first.fingerprint)
    rig.write('secret.yaml', manifest(secret(second)))
    await waitFor(
      'the renewed certificate',
      async () => (await shownCertificate(port, client)) === second.fingerprint,
    )
    await Promise.all([proxy.stop(), other.stop()])
    await plane.kill()
    await proxy.start()
    expect(await shownCertificate(port, client)).toBe(second.fingerprint)
    expect(other.kept()).not.toContain('PRIVATE KEY')
    expect(proxy.kept()).toContain('PRIVATE KEY')
    expect(proxy.output).not.toContain('PRIVATE KEY')
  })
})
