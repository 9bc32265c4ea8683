/** Waiting for a condition instead of for a time. */

const patienceMs = 50_000

/** Asks again and again until the answer is neither undefined nor false; the test's own limit ends it. */
export async function waitFor<Value>(
  what: string,
  ask: () => Promise<Value | undefined | false> | Value | undefined | false,
  timeoutMs = patienceMs,
): Promise<Value> {
  const end = performance.now() + timeoutMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    if (performance.now() > end) throw new Error(`waited in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Repeats assertions until they hold; fails as they do at last. */
export async function eventually<Value>(check: () => Promise<Value> | Value): Promise<Value> {
  const end = performance.now() + patienceMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() > end) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
