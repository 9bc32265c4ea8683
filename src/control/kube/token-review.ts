/** Verifies service-account tokens of proxies. */
import { userOfToken } from './access-review.ts'
import type { KubeClient } from './client.ts'

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
  const user = await userOfToken(client, token, audience)
  const [system, kind, namespace, name, ...rest] = user?.username.split(':') ?? []
  if (system !== 'system' || kind !== 'serviceaccount' || rest.length > 0) return undefined
  return namespace && name ? { namespace, name } : undefined
}
