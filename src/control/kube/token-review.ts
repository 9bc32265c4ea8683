/** Verifies service-account tokens with a TokenReview (authentication.k8s.io/v1). */
import type { KubeClient } from './client.ts'

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean
    readonly user?: { readonly username?: string }
  }
}

/**
 * Returns the namespace and name of the service account that a token belongs to. Returns undefined if
 * the token is not valid for the audience, or belongs to another kind of user.
 * @throws KubeError if the API server does not answer
 */
export async function reviewToken(
  client: KubeClient,
  token: string,
  audience: string,
): Promise<{ readonly namespace: string; readonly name: string } | undefined> {
  const { status } = await client.create<TokenReview>(
    'apis/authentication.k8s.io/v1/tokenreviews',
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, audiences: [audience] },
    },
  )
  if (status?.authenticated !== true) return undefined
  const [system, kind, namespace, name, ...rest] = status.user?.username?.split(':') ?? []
  if (system !== 'system' || kind !== 'serviceaccount' || rest.length > 0) return undefined
  return namespace && name ? { namespace, name } : undefined
}
