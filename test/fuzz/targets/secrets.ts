import { pem } from '../support/certificate.ts'
import { ControlPlane } from '../support/control-plane.ts'
import { defineTarget } from '../support/target.ts'

const entries = ['tls.crt', 'tls.key', 'ca.crt', '.htaccess', 'Authorization', 'key', '..', 'a']
const types = ['kubernetes.io/tls', 'Opaque', 'kubernetes.io/basic-auth', '']
const others = ['', '{"key": "k"}', '{', 'user:$apr1$a$b\n:\n#\nuser', '\0', 'Bearer x', '\ufffd']

/** What refers to the Secret and the ConfigMap, so that they are used. */
const group = 'gateway.networking.k8s.io'
const meta = (name: string) => ({ name, namespace: 'default' })
const certificateRef = { name: 'hostile' }
const users = [
  {
    apiVersion: `${group}/v1`,
    kind: 'Gateway',
    metadata: meta('edge'),
    spec: {
      gatewayClassName: 'agentgateway',
      listeners: [
        {
          name: 'https',
          port: 8443,
          protocol: 'HTTPS',
          tls: { certificateRefs: [certificateRef] },
        },
      ],
      tls: {
        frontend: {
          default: {
            validation: { caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'hostile' }] },
          },
        },
      },
    },
  },
  {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'GatewayPolicy',
    metadata: meta('users'),
    spec: {
      targetRefs: [{ group, kind: 'Gateway', name: 'edge' }],
      traffic: {
        basicAuthentication: { secretRef: { name: 'hostile' } },
        apiKeyAuthentication: { secretRef: { name: 'hostile' } },
      },
      backend: {
        tls: { mtlsCertificateRef: [certificateRef], caCertificateRefs: [{ name: 'hostile' }] },
      },
    },
  },
]

export default defineTarget({
  about: 'no certificate, key or other value of a Secret stops the control plane',
  generate(random) {
    const data: Record<string, string> = {}
    for (let left = 1 + random.below(5); left > 0; left--) {
      const text = random.oneIn(8) ? random.pick(others) : pem(random)
      data[random.pick(entries)] = Buffer.from(text).toString('base64')
    }
    return JSON.stringify({ type: random.pick(types), data })
  },
  start() {
    const plane = new ControlPlane()
    return {
      check(input) {
        let secret: object
        try {
          secret = JSON.parse(input.toString()) as object
        } catch {
          return
        }
        const same = { apiVersion: 'v1', metadata: meta('hostile') }
        const { data } = secret as { data?: unknown }
        const configMap = { ...same, kind: 'ConfigMap', binaryData: data }
        plane.checkObjects([{ ...same, kind: 'Secret', ...secret }, configMap, ...users])
      },
    }
  },
})
