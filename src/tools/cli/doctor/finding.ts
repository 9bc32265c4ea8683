/** What `sluice doctor` checks, and what it has found. */

export interface Finding {
  /** `error`: something does not work. `warning`: something will not work, or should be looked at. */
  readonly severity: 'error' | 'warning'
  /** What the finding is about, such as `Gateway default/edge`. */
  readonly subject: string
  readonly message: string
  /** What to do. */
  readonly advice: string
}

export interface Check {
  readonly name: string
  readonly findings: readonly Finding[]
  /** Why nothing, or only a part, was checked; omitted if the check is complete. */
  readonly notChecked?: string
}

/** A check that has not run yet; `name` is shown in the output. */
export interface CheckPlan {
  readonly name: string
  readonly run: () => Promise<Omit<Check, 'name'>> | Omit<Check, 'name'>
}

/** Runs checks one after another. If a check throws, its message becomes `notChecked`. */
export async function runChecks(plans: readonly CheckPlan[]): Promise<Check[]> {
  const checks: Check[] = []
  for (const { name, run } of plans) {
    try {
      checks.push({ name, ...(await run()) })
    } catch (error) {
      const notChecked = error instanceof Error ? error.message : String(error)
      checks.push({ name, findings: [], notChecked })
    }
  }
  return checks
}

export const errorAbout = (subject: string, message: string, advice: string): Finding => ({
  severity: 'error',
  subject,
  message,
  advice,
})

export const warningAbout = (subject: string, message: string, advice: string): Finding => ({
  severity: 'warning',
  subject,
  message,
  advice,
})
