import type { CredentialSource } from './credential-source.ts'

/** `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, for temporary ones, `AWS_SESSION_TOKEN`. */
export const environmentCredentials: CredentialSource = async (env) => {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env
  if (!accessKeyId || !secretAccessKey) return undefined
  const sessionToken = env.AWS_SESSION_TOKEN
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) }
}
