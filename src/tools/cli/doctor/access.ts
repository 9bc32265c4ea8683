/** Checks that RBAC lets the controller do what it needs. */
import { kinds } from '../../../control/api/kinds.ts'
import { isAllowed, type KubeClient, KubeError, objectPath } from '../../../control/kube/index.ts'
import { definitionRows } from './definitions.ts'
import { type Check, errorAbout, type Finding } from './finding.ts'
import { find, leaseIn } from './lease.ts'

interface Access {
  readonly verb: string
  readonly group: string
  readonly resource: string
  /** If omitted, all namespaces. */
  readonly namespace?: string
}

/** Returns the permissions that the controller needs in every cluster. */
function neededAccess(namespace: string): Access[] {
  const optional = new Set(['inferencepools', 'xaccesspolicies'])
  return [
    ...kinds
      .filter(({ plural }) => !optional.has(plural))
      .flatMap(({ group, plural: resource }) =>
        ['list', 'watch'].map((verb) => ({ verb, group, resource })),
      ),
    ...definitionRows
      .filter(({ plural }) => !optional.has(plural) && plural !== 'referencegrants')
      .map(({ group, plural }) => ({ verb: 'patch', group, resource: `${plural}/status` })),
    { verb: 'get', group: '', resource: 'secrets' },
    { verb: 'create', group: 'authentication.k8s.io', resource: 'tokenreviews' },
    ...['get', 'create', 'update'].map((verb) => {
      return { verb, group: 'coordination.k8s.io', resource: 'leases', namespace }
    }),
    ...['deployments', 'daemonsets'].map((resource) => ({
      verb: 'create',
      group: 'apps',
      resource,
    })),
  ]
}

/** Checks the permissions of the leader's service account by SubjectAccessReviews. */
export async function accessFindings(
  client: KubeClient,
  namespace: string,
): Promise<Omit<Check, 'name'>> {
  const account = await accountOf(client, namespace)
  if (account === undefined) {
    return {
      findings: [],
      notChecked: 'the leader is not a pod, so its service account is unknown',
    }
  }
  const username = `system:serviceaccount:${namespace}:${account}`
  const groups = [
    'system:serviceaccounts',
    `system:serviceaccounts:${namespace}`,
    'system:authenticated',
  ]
  const findings: Finding[] = []
  try {
    for (const access of neededAccess(namespace)) {
      if (await isAllowed(client, { username, groups }, access)) continue
      const { verb, group, resource } = access
      const text = `it may not ${verb} ${resource}${group === '' ? '' : ` of ${group}`}`
      const advice = 'upgrade the chart, or add the rule to the ClusterRole of the controller'
      findings.push(errorAbout(`ServiceAccount ${namespace}/${account}`, text, advice))
    }
  } catch (error) {
    if (!(error instanceof KubeError) || error.status !== 403) throw error
    return { findings, notChecked: 'this user may not create subjectaccessreviews' }
  }
  return { findings }
}

/** The service account of the pod that holds the lease. */
async function accountOf(client: KubeClient, namespace: string): Promise<string | undefined> {
  const { holderIdentity = '' } = (await leaseIn(client, namespace)) ?? {}
  if (holderIdentity === '') return undefined
  // A holder is the name of the pod, and a suffix for each start of the process.
  const pod = holderIdentity.replace(/_[0-9a-f]{8}$/, '')
  const path = objectPath({ group: '', version: 'v1', plural: 'pods' }, namespace, pod)
  const { serviceAccountName } = ((await find(client, path))?.spec ?? {}) as {
    readonly serviceAccountName?: string
  }
  return serviceAccountName
}
