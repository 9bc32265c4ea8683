/** Binds sources to the API, and defines the objects that exist without a manifest. */

import { checkRegex } from '../../engines/core/regex.ts'
import { controllerName, defaultClassName, gatewayGroup } from '../../ground/model/api-names.ts'
import { secretPaths } from '../api/fields.ts'
import { validateObject } from '../api/validate.ts'
import { ownProblems } from '../desired/derive/own-problems.ts'
import type { ObserveOptions } from '../watch/observed.ts'

export const apiBinding: Pick<ObserveOptions, 'validate' | 'examine' | 'secretPaths'> = {
  validate: validateObject,
  examine: (object) => ownProblems(object, regexProblem),
  secretPaths,
}

/** The default GatewayClass; a manifest may define it differently. */
export const builtInObjects: readonly object[] = [
  {
    apiVersion: `${gatewayGroup}/v1`,
    kind: 'GatewayClass',
    metadata: { name: defaultClassName },
    spec: { controllerName },
  },
]

/** Returns why the regex engine refuses a pattern, or undefined if the pattern is valid. */
export function regexProblem(pattern: string): string | undefined {
  const checked = checkRegex(pattern)
  return checked.ok ? undefined : checked.message
}
