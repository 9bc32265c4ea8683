/** What a source needs to know of the API, and the objects that exist without a manifest. */
import { secretPaths } from '../api/fields.ts'
import { controllerName, defaultClassName, gatewayGroup } from '../api/names.ts'
import { validateObject } from '../api/validate.ts'
import { checkRegex } from '../core/regex.ts'
import { ownProblems } from '../desired/derive/own-problems.ts'
import type { Examine, SecretPaths, Validate } from '../watch/index.ts'

export const apiBinding: {
  readonly validate: Validate
  readonly examine: Examine
  readonly secretPaths: SecretPaths
} = {
  validate: validateObject,
  examine: (object) => ownProblems(object, regexProblem),
  secretPaths,
}

/** The default GatewayClass; a manifest may say otherwise. */
export const builtInObjects: readonly object[] = [
  {
    apiVersion: `${gatewayGroup}/v1`,
    kind: 'GatewayClass',
    metadata: { name: defaultClassName },
    spec: { controllerName },
  },
]

/** Why a pattern cannot be used, by the engine that would run it; undefined if it can. */
export function regexProblem(pattern: string): string | undefined {
  const checked = checkRegex(pattern)
  return checked.ok ? undefined : checked.message
}
