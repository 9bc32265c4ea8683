import { originText, parseOrigin } from '../../model/origin.ts'
import type { Compiled, PolicyProblem } from '../define.ts'
import type { CsrfConfig } from './config.ts'
import type { CsrfSpec } from './schema.ts'

/** An origin without a port that is known for its scheme can never be met, which is a problem. */
export function compile({ additionalOrigins = [] }: CsrfSpec): Compiled<CsrfConfig> {
  const problems: PolicyProblem[] = []
  const origins = additionalOrigins.flatMap((text, index) => {
    const origin = parseOrigin(text)
    if (origin !== undefined) return [originText(origin)]
    const message = `${text} needs a port: its scheme has no default one`
    problems.push({ path: `additionalOrigins[${index}]`, message })
    return []
  })
  return { config: { additionalOrigins: origins }, problems }
}
