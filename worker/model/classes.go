package model

// Classes returns all classes, for validation of external input.
func Classes() []Class {
	return []Class{
		RateLimited, Overloaded, Timeout, Network, Truncated, Auth, Quota, InvalidRequest, ContextLength,
		ContentFilter, ModelOutput, ReplyTooLarge, NoProvider, Unknown,
	}
}
