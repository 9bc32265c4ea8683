/** Who a service-account token belongs to, as the API server tells (authentication.k8s.io/v1). */
import type { KubeClient } from './client.ts'

interface TokenIdentity {
  /** Such as `system:serviceaccount:shop:edge`. */
  readonly username: string
  readonly groups: readonly string[]
}

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean
    readonly error?: string
    readonly user?: { readonly username?: string; readonly groups?: readonly string[] }
  }
}

/**
 * The identity of a token that is valid for an audience; undefined where it is not.
 * @throws KubeError where the API server cannot be asked
 */
export async function reviewToken(
  client: KubeClient,
  token: string,
  audience: string,
): Promise<TokenIdentity | undefined> {
  const { status } = await client.create<TokenReview>(
    'apis/authentication.k8s.io/v1/tokenreviews',
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, audiences: [audience] },
    },
  )
  const username = status?.user?.username
  if (status?.authenticated !== true || username === undefined) return undefined
  return { username, groups: status.user?.groups ?? [] }
}

/** Namespace and name of a service account, from its user name; undefined for other users. */
export function serviceAccountOf(
  username: string,
): { readonly namespace: string; readonly name: string } | undefined {
  const [system, kind, namespace, name, ...rest] = username.split(':')
  if (system !== 'system' || kind !== 'serviceaccount' || rest.length > 0) return undefined
  return namespace && name ? { namespace, name } : undefined
}
