import type { Certificate } from '../support/certificates.ts'
import { useAuthority, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, staticBackend, toBackend } from '../support/manifests.ts'

export const base64 = (text: string) => Buffer.from(text).toString('base64')

export function tlsSecret(name: string, { certificate, key }: Certificate, namespace = 'default') {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    type: 'kubernetes.io/tls',
    data: { 'tls.crt': base64(certificate), 'tls.key': base64(key) },
  }
}

export const https = (
  name: string,
  hostname: string | undefined,
  ...certificateRefs: object[]
) => ({
  name,
  port,
  protocol: 'HTTPS',
  ...(hostname !== undefined && { hostname }),
  tls: { certificateRefs },
})

export const grant = (kind: string) => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'ReferenceGrant',
  metadata: { name: 'certificates', namespace: 'vault' },
  spec: {
    from: [{ group: 'gateway.networking.k8s.io', kind, namespace: 'default' }],
    to: [{ group: '', kind: 'Secret' }],
  },
})

export const client = (servername: string) => ({ ca: authority.certificate, servername })

const authority = useAuthority()
export const upstream = useUpstream('main')
export const port = await freePort()
export const plainPort = await freePort()
export const certificates = {
  shop: authority.issue(['shop.example.com']),
  wild: authority.issue(['*.wild.example.com']),
  ec: authority.issue(['both.example.com'], 'ec'),
  rsa: authority.issue(['both.example.com'], 'rsa'),
  old: authority.issue(['rotating.example.com']),
  new: authority.issue(['rotating.example.com']),
  far: authority.issue(['far.example.com']),
}
export const running = useGateway(() => {
  const { shop, wild, ec, rsa, old, far } = certificates
  return {
    args: ['--admin-address', '127.0.0.1:0'],
    manifests: {
      'all.yaml': manifest(
        gateway(port, {
          listeners: [
            { name: 'http', port: plainPort, protocol: 'HTTP' },
            https('shop', 'shop.example.com', { name: 'shop' }),
            https('wild', '*.wild.example.com', { name: 'wild' }),
            https('both', 'both.example.com', { name: 'rsa' }, { name: 'ec' }),
            https('rotating', 'rotating.example.com', { name: 'rotating' }),
            https('far', 'far.example.com', { name: 'far', namespace: 'vault' }),
            https('missing', 'missing.example.com', { name: 'absent' }),
            https('mismatched', 'mismatched.example.com', { name: 'mismatched' }),
          ],
        }),
        staticBackend('main', upstream.port),
        httpRoute('echo', {
          parentRefs: ['shop', 'wild', 'both', 'rotating', 'far', 'missing', 'mismatched'].map(
            (sectionName) => ({ name: 'edge', sectionName }),
          ),
          rules: [{ backendRefs: [toBackend('main')] }],
        }),
        httpRoute('moved', {
          parentRefs: [{ name: 'edge', sectionName: 'shop' }],
          rules: [
            {
              matches: [{ path: { value: '/moved' } }],
              filters: [
                {
                  type: 'RequestRedirect',
                  requestRedirect: { path: { type: 'ReplaceFullPath', replaceFullPath: '/here' } },
                },
              ],
            },
          ],
        }),
        httpRoute('upgrade', {
          parentRefs: [{ name: 'edge', sectionName: 'http' }],
          rules: [{ filters: [{ type: 'RequestRedirect', requestRedirect: { scheme: 'https' } }] }],
        }),
      ),
      'secrets.yaml': manifest(
        tlsSecret('shop', shop),
        tlsSecret('wild', wild),
        tlsSecret('ec', ec),
        tlsSecret('rsa', rsa),
        tlsSecret('far', far, 'vault'),
        // Unused until a test refers to it.
        tlsSecret('spare', old),
        tlsSecret('mismatched', { ...shop, key: wild.key }),
      ),
      'rotating.yaml': manifest(tlsSecret('rotating', old)),
      'grant.yaml': manifest(grant('Gateway')),
    },
  }
})
export const admin = () => /admin: (http:\S+)/.exec(running.stderr)?.[1] ?? ''
