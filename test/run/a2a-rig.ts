/** Routes to A2A agents, and requests of clients without an SDK. */
import { httpRoute, type Manifest, toBackend } from '../support/manifests.ts'

const rewrite = [
  {
    type: 'URLRewrite',
    urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } },
  },
]
/** A route from `/agents/NAME` to an agent on loopback. */
export function served(name: string, a2a: Manifest, policies?: Manifest): Manifest[] {
  const matches = [{ path: { type: 'PathPrefix', value: `/agents/${name}` } }]
  return [
    httpRoute(name, { rules: [{ matches, filters: rewrite, backendRefs: [toBackend(name)] }] }),
    {
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'GatewayBackend',
      metadata: { name },
      spec: {
        a2a: { host: '127.0.0.1', ...a2a },
        ...(policies && { policies: { a2a: policies } }),
      },
    },
  ]
}

export const deny = (...matchExpressions: string[]) => ({
  authorization: { action: 'Deny', policy: { matchExpressions } },
})
/** Sends a JSON-RPC request to the agent at a route. */
export async function rpc(base: string, method: string, params: object, version = '1.0') {
  const response = await fetch(`${base}/a2a/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': version },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
  })
  const body = (await response.json()) as { error?: { code: number; message: string } }
  return { status: response.status, body }
}
