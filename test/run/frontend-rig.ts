import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { useAuthority, useGateway, useUpstream } from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import { handshake } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'

export const client = () => ({ ca: authority.certificate, servername: 'a.example.com' })

/** Puts a frontend policy in force; `settled` says when. */
export async function frontend(spec: object, settled: () => Promise<boolean>): Promise<void> {
  running.write('frontend.yaml', manifest(policy('frontend', 'Gateway/edge', { frontend: spec })))
  await waitFor('the policy', settled)
}

/** What a handshake agrees on, or why it fails. */
export const agreed = async (to: number, options = {}) => {
  try {
    const socket = await handshake(to, client(), options)
    const { standardName } = socket.getCipher()
    const found = [socket.getProtocol(), standardName, socket.alpnProtocol] as const
    socket.destroy()
    return found
  } catch (error) {
    return [String(error)] as const
  }
}

export const open = async (to: number): Promise<Socket> => {
  const socket = connect({ port: to, host: '127.0.0.1' })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

export const ended = (socket: Socket) =>
  new Promise<void>((resolve) => socket.once('close', resolve))

const authority = useAuthority()
const upstream = useUpstream('main')
/** Ports of a Gateway with a policy, and of one without. */
export const port = await freePorts('http', 'https', 'plain', 'plainTls')
export const running = useGateway(() => {
  const listeners = (plain: number, secure: number) => [
    { name: 'http', port: plain, protocol: 'HTTP' },
    {
      name: 'https',
      port: secure,
      protocol: 'HTTPS',
      tls: { certificateRefs: [{ name: 'cert' }] },
    },
  ]
  const toMain = { rules: [{ backendRefs: [toBackend('main')] }] }
  return {
    manifests: {
      'gateway.yaml': manifest(
        gateway(0, { listeners: listeners(port.http, port.https) }),
        gateway(0, { listeners: listeners(port.plain, port.plainTls) }, 'plain'),
        tlsSecret('cert', authority.issue(['a.example.com'])),
        staticBackend('main', upstream.port),
        httpRoute('main', { ...toMain, parentRefs: [{ name: 'edge' }, { name: 'plain' }] }),
        httpRoute('body', {
          parentRefs: [{ name: 'edge' }, { name: 'plain' }],
          rules: [
            {
              matches: [{ path: { type: 'PathPrefix', value: '/body' } }],
              backendRefs: [toBackend('main')],
            },
          ],
        }),
        httpRoute('direct', {
          rules: [{ matches: [{ path: { type: 'PathPrefix', value: '/direct' } }] }],
        }),
        policy('direct', 'HTTPRoute/direct', { traffic: { directResponse: { status: 200 } } }),
        policy('body', 'HTTPRoute/body', {
          traffic: {
            authorization: {
              policy: { matchExpressions: ['string(request.body).startsWith("open")'] },
            },
          },
        }),
      ),
    },
  }
})
