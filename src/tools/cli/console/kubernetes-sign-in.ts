/** Sign-in to the console of a controller with tokens of the cluster. RBAC says who may do what. */
import {
  isAllowed,
  KubeClient,
  type KubernetesCluster,
  userOfToken,
} from '../../../control/kube/index.ts'
import { RememberedSignIn, type Role, type SignIn } from './server/sign-in.ts'

/** Tokens for this audience are of no use at the API server. */
const audience = 'sluice-console'
/** No such objects exist. RBAC has rules for them all the same. */
const group = 'sluice.dev'
const resource = 'consoles'
const verbs: Readonly<Record<Role, string>> = { read: 'get', operate: 'update' }

export function kubernetesSignIn(cluster: KubernetesCluster): SignIn {
  const client = new KubeClient(cluster)
  return new RememberedSignIn({
    method: 'kubernetes',
    hint: (role) => `Grant the verb ${verbs[role]} on consoles.sluice.dev.`,
    review: async (token) => {
      const user =
        (await userOfToken(client, token, audience)) ?? (await userOfToken(client, token))
      if (user === undefined) return undefined
      const ask = async (role: Role) =>
        (await isAllowed(client, user, { verb: verbs[role], group, resource })) ? [role] : []
      const roles = await Promise.all([ask('read'), ask('operate')])
      return { name: user.username, roles: roles.flat() }
    },
  })
}
