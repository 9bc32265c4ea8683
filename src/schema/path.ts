/** Steps from a value to a part of it: field names, map keys and list positions. */
export type PathStep = string | number

/** `spec.targets[2].labels["a/b"]`: fields by dot, positions in brackets, other keys quoted. */
export function formatPath(steps: readonly PathStep[]): string {
  let path = ''
  for (const step of steps) {
    if (typeof step === 'number') path += `[${step}]`
    else if (/^[A-Za-z_$][\w$-]*$/.test(step)) path += path === '' ? step : `.${step}`
    else path += `[${JSON.stringify(step)}]`
  }
  return path
}
