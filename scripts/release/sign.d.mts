export function signChecksums(folder: string, key: string): void
