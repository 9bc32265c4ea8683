/** Carries over annotations of an Ingress that other controllers read from Gateways and HTTPRoutes. */
import type { Conversion } from '../conversion.ts'
import type { SourceField } from '../field.ts'

/** Annotations of tools that manage the Ingress itself. */
const bookkeeping = /^(kubectl\.kubernetes\.io\/|meta\.helm\.sh\/|kubernetes\.io\/ingress\.class$)/

/** Annotations that cert-manager reads from the Gateway, whose certificates it renews. */
const forCertificates = /^((acme\.)?cert-manager\.io\/|kubernetes\.io\/tls-acme$)/

/** external-dns reads `target` from the Gateway, and its other annotations from routes. */
const forNames = /^external-dns\.(alpha\.)?kubernetes\.io\//

/** An Ingress whose annotations are carried over. */
interface AnnotatedIngress {
  readonly namespace: string | undefined
  readonly annotations: SourceField
}

export type Annotations = Readonly<Record<string, string>>

/** Marks annotations as read that need no counterpart. What no reader knows is reported at the end. */
export function ignoreBookkeeping(annotations: SourceField): void {
  for (const [key, value] of annotations.entries()) if (bookkeeping.test(key)) value.take()
}

/**
 * The annotations that belong on the Gateway, which stands for all Ingresses. The first value of an annotation
 * wins. Each annotation is reported.
 */
export function gatewayAnnotations(
  ingresses: readonly AnnotatedIngress[],
  result: Conversion,
): Annotations {
  const found = new Map<string, string>()
  for (const ingress of ingresses) {
    for (const [key, field] of ingress.annotations.entries()) {
      if (!forCertificates.test(key) && !forNames.test(key)) continue
      const value = field.text() ?? ''
      const kept = found.get(key) ?? value
      found.set(key, kept)
      const problem = problemOf(key, kept === value, ingress, result)
      const owner = isForRoutes(key) ? 'the Gateway and of the HTTPRoutes' : 'the Gateway'
      if (problem !== undefined) field.report('lost', problem)
      else field.report('changed', `is now an annotation of ${owner}`)
    }
  }
  return Object.fromEntries(found)
}

/** Why an annotation has no effect on the Gateway; undefined if it has. */
function problemOf(
  key: string,
  isKept: boolean,
  { namespace }: AnnotatedIngress,
  result: Conversion,
): string | undefined {
  if (!isKept && !isForRoutes(key)) return 'the Gateway has another value of this annotation'
  const isElsewhere = namespace !== result.namespace && namespace !== undefined
  if (!isElsewhere || !forCertificates.test(key)) return undefined
  return `cert-manager does not renew Secrets of namespace ${namespace} for a Gateway of another namespace: add a Certificate there`
}

const isForRoutes = (key: string): boolean => forNames.test(key) && !key.endsWith('/target')

/** The annotations that belong on the routes of an Ingress. */
export function routeAnnotations(annotations: SourceField): Annotations {
  const all = annotations.entries().filter(([key]) => isForRoutes(key))
  return Object.fromEntries(all.map(([key, field]) => [key, field.text() ?? '']))
}
