/** One step from a value to a part of it: a field name, a map key or a list position. */
export type PathStep = string | number

/** Formats a path such as `spec.targets[2].labels["a/b"]`; keys that are not plain names are quoted. */
export function formatPath(steps: readonly PathStep[]): string {
  let path = ''
  for (const step of steps) {
    if (typeof step === 'number') path += `[${step}]`
    else if (/^[A-Za-z_$][\w$-]*$/.test(step)) path += path === '' ? step : `.${step}`
    else path += `[${JSON.stringify(step)}]`
  }
  return path
}
