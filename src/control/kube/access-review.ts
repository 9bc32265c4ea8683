/** Who the bearer of a token is (TokenReview), and what RBAC allows this user (SubjectAccessReview). */
import type { KubeClient } from './client.ts'

interface KubeUser {
  readonly username: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

interface TokenReview {
  readonly status?: { readonly authenticated?: boolean; readonly user?: Partial<KubeUser> }
}

interface AccessReview {
  readonly status?: { readonly allowed?: boolean }
}

/**
 * Returns undefined if the token is not valid for the audience. If no audience is given, it is that of the API server.
 * @throws KubeError if the API server does not answer
 */
export async function userOfToken(
  client: KubeClient,
  token: string,
  audience?: string,
): Promise<KubeUser | undefined> {
  const { status } = await client.create<TokenReview>(
    'apis/authentication.k8s.io/v1/tokenreviews',
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, ...(audience !== undefined && { audiences: [audience] }) },
    },
  )
  const { username } = status?.user ?? {}
  if (status?.authenticated !== true || username === undefined || username === '') return undefined
  return { ...status.user, username }
}

/** What a user wants to do with resources of an API group, which need not exist. */
interface ResourceAccess {
  readonly verb: string
  readonly group: string
  /** The plural name, with the subresource if there is one, such as `gateways/status`. */
  readonly resource: string
  /** If omitted, all namespaces. */
  readonly namespace?: string
}

/** @throws KubeError if the API server does not answer */
export async function isAllowed(
  client: KubeClient,
  { username, uid, groups, extra }: KubeUser,
  { resource, ...access }: ResourceAccess,
): Promise<boolean> {
  const [plural, subresource] = resource.split('/')
  const resourceAttributes = { ...access, resource: plural, ...(subresource && { subresource }) }
  const { status } = await client.create<AccessReview>(
    'apis/authorization.k8s.io/v1/subjectaccessreviews',
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user: username, uid, groups, extra, resourceAttributes },
    },
  )
  return status?.allowed === true
}
